// Merging inside values: documents, lists, texts, counters.
// Part of llvs.hpp.
#ifndef LLVS_DOCUMENTS_HPP
#define LLVS_DOCUMENTS_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error.hpp"

namespace llvs {

/// What a merge decided where both sides had changed the same; see llvs_conflict. Values are JSON texts.
struct Conflict {
    llvs_conflict_kind kind;
    std::string path;
    std::optional<std::string> base, newer, older, result;
    /// Prefix and pattern; nothing where no rule holds.
    std::optional<std::pair<std::string, std::string>> rule;
};

/// What came of merging a value; see llvs_merged_value.
struct MergedValue {
    llvs_merged_source source;
    /// Nothing when there is no value.
    std::optional<std::string> data;
    std::vector<Conflict> conflicts;
    std::string digest;
};

namespace detail {

inline std::optional<std::string> optional_string(llvs_bytes bytes) {
    if (!bytes.data) return std::nullopt;
    return string(bytes);
}

} // namespace detail

/// Merges what two sides made of a value; nothing is absent. See llvs_merge_values.
///
///     llvs::merge_values("{\"n\":1}", "{\"n\":2}", "{\"n\":3}", "{\"/n\":\"counter\"}").data   // {"n":4}
inline MergedValue merge_values(
    std::optional<std::string_view> base, std::optional<std::string_view> newer, std::optional<std::string_view> older,
    std::string_view rules = {}, const llvs_merge_values_options *options = nullptr) {
    auto bytes = [](const std::optional<std::string_view> &value) { return value ? detail::bytes(*value) : llvs_bytes LLVS_NONE_INIT; };
    const llvs_bytes o = bytes(base), x = bytes(newer), y = bytes(older);
    llvs_merged_value *raw = nullptr;
    detail::run([&](llvs_error **error) {
        return llvs_merge_values(detail::bytes(rules), base ? &o : nullptr, newer ? &x : nullptr, older ? &y : nullptr, options, &raw,
            error);
    });
    detail::Handle<llvs_merged_value, llvs_merged_value_free> owned(raw);
    MergedValue merged{raw->source, detail::optional_string(raw->data), {}, detail::string(raw->digest)};
    for (std::size_t i = 0; i < raw->conflict_count; i++) {
        const llvs_conflict *one = raw->conflicts[i];
        Conflict conflict{one->kind, detail::string(one->path), detail::optional_string(one->base), detail::optional_string(one->newer),
                          detail::optional_string(one->older), detail::optional_string(one->result), std::nullopt};
        if (one->rule_pattern.data) conflict.rule.emplace(detail::string(one->rule_prefix), detail::string(one->rule_pattern));
        merged.conflicts.push_back(std::move(conflict));
    }
    return merged;
}

/// Throws an Error whose path is the JSON pointer to what is wrong with the rules; see llvs_schema_check.
inline void check_schema(std::string_view rules) {
    detail::run([&](llvs_error **error) { return llvs_schema_check(detail::bytes(rules), error); });
}

} // namespace llvs

#endif
