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
#include "model.hpp"

namespace llvs {

/// A decision of a merge: both sides had changed the same part; see llvs_conflict. Values are JSON texts.
struct Conflict {
    llvs_conflict_kind kind;
    std::string path;
    std::optional<std::string> base, newer, older, result;
    /// Prefix and pattern of the rule; nothing if there is none.
    std::optional<std::pair<std::string, std::string>> rule;
    /// The ids of the value, and of the merge that decided it; empty if there is none.
    std::string id, version;
};

/// The rules of a store, or the result of registering more; see llvs_schema.
struct Schema {
    /// JSON; nothing if there are no rules.
    std::optional<std::string> data;
    std::string stored_version;
    bool changed = false;
    /// Why the rules that prevail are invalid, and where; empty if they are valid.
    std::string problem, problem_path;
    /// `newer` is the rule of the store, which stays, `older` the given one.
    std::vector<Conflict> contradictions;
    /// The version that registering them made.
    std::optional<std::string> version;
};

/// The result of merging a value; see llvs_merged_value.
struct MergedValue {
    llvs_merged_source source;
    /// Nothing if there is no value.
    std::optional<std::string> data;
    std::vector<Conflict> conflicts;
    std::string digest;
};

/// The conflicts of a merge; see llvs_conflict_list.
struct Conflicts {
    std::vector<Conflict> records;
    /// For a merge that was explained: whether these are the conflicts that it recorded.
    bool recorded = true;
    std::string digest;
};

/// Which conflicts to list, and how; see llvs_conflict_options.
struct ConflictOptions {
    /// Only the conflicts of this value; empty: of all.
    std::string value_id;
    /// Rules instead of the store's; empty: the store's.
    std::string rules;
    /// Progress and cancellation; must live while the call runs.
    const llvs_control *control = nullptr;
};

namespace detail {

inline std::optional<std::string> optional_string(llvs_bytes bytes) {
    if (!bytes.data) return std::nullopt;
    return string(bytes);
}

inline Conflict conflict(const llvs_conflict &one) {
    Conflict conflict{one.kind, string(one.path), optional_string(one.base), optional_string(one.newer), optional_string(one.older),
                      optional_string(one.result), std::nullopt, string(one.id), string(one.version)};
    if (one.rule_pattern.data) conflict.rule.emplace(string(one.rule_prefix), string(one.rule_pattern));
    return conflict;
}

inline std::vector<Conflict> conflicts(const llvs_conflict *const *items, std::size_t count) {
    std::vector<Conflict> found;
    for (std::size_t i = 0; i < count; i++) found.push_back(conflict(*items[i]));
    return found;
}

/// Takes ownership of a schema.
inline Schema take(llvs_schema *raw) {
    Handle<llvs_schema, llvs_schema_free> owned(raw);
    Schema schema{optional_string(raw->data), string(raw->stored_version), raw->changed != 0, string(raw->problem),
                  string(raw->problem_path), conflicts(raw->contradictions, raw->contradiction_count), std::nullopt};
    if (raw->version) schema.version = string(raw->version->id);
    return schema;
}

/// Takes ownership of a list of conflicts.
inline Conflicts take(llvs_conflict_list *raw) {
    Handle<llvs_conflict_list, llvs_conflict_list_free> owned(raw);
    return {conflicts(raw->items, raw->count), raw->recorded != 0, string(raw->digest)};
}

/// A conflict in its borrowed form.
inline llvs_conflict borrow(const Conflict &one) {
    auto optional = [](const std::optional<std::string> &text) { return text ? bytes(*text) : llvs_bytes LLVS_NONE_INIT; };
    llvs_conflict raw = {};
    raw.struct_size = sizeof raw;
    raw.kind = one.kind;
    raw.path = bytes(one.path);
    raw.base = optional(one.base);
    raw.newer = optional(one.newer);
    raw.older = optional(one.older);
    raw.result = optional(one.result);
    if (one.rule) {
        raw.rule_prefix = bytes(one.rule->first);
        raw.rule_pattern = bytes(one.rule->second);
    }
    raw.id = bytes(one.id);
    raw.version = bytes(one.version);
    return raw;
}

} // namespace detail

/// Merges two sides of a value; nothing means absent. See llvs_merge_values.
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
    MergedValue merged{raw->source, detail::optional_string(raw->data), detail::conflicts(raw->conflicts, raw->conflict_count),
                       detail::string(raw->digest)};
    return merged;
}

/// Checks rules: throws an Error whose path is the JSON pointer to the mistake; see llvs_schema_check.
inline void check_schema(std::string_view rules) {
    detail::run([&](llvs_error **error) { return llvs_schema_check(detail::bytes(rules), error); });
}

/// The result of undoing or picking a version; see llvs_revert_result.
struct Reverted {
    /// Nothing if everything that the version changed was changed again later: then nothing is stored.
    std::optional<Version> version;
    /// The ids of values that were changed, and of values of which a part stays because it was changed later.
    std::vector<std::string> undone, superseded;
    std::vector<Conflict> conflicts;
    /// Of a pick: after a merge of both lines, changes of counters count twice.
    bool counts = false;
    /// The versions that were undone, newest first, and the description of the save.
    std::vector<std::string> versions;
    std::string description;
};

namespace detail {

/// Takes ownership of a result.
inline Reverted take(llvs_revert_result *made) {
    Handle<llvs_revert_result, llvs_revert_result_free> owned(made);
    auto strings = [](const llvs_bytes *ids, std::size_t count) {
        std::vector<std::string> found;
        for (std::size_t i = 0; i < count; i++) found.push_back(string(ids[i]));
        return found;
    };
    Reverted reverted{std::nullopt, strings(made->undone, made->undone_count), strings(made->superseded, made->superseded_count),
                      conflicts(made->conflicts, made->conflict_count), made->counts != 0, strings(made->versions, made->version_count),
                      string(made->description)};
    if (made->version) reverted.version.emplace(*made->version);
    return reverted;
}

} // namespace detail

} // namespace llvs

#endif
