// Finding values by their contents. Part of llvs.hpp.
#ifndef LLVS_INDEX_HPP
#define LLVS_INDEX_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coordinator.hpp"
#include "store.hpp"

namespace llvs {

/// A query of an index; see llvs_index_question. Tuples are JSON arrays; an empty one means none.
struct IndexQuestion {
    std::string equal;
    /// The beginning of the string after `equal`; not together with bounds.
    std::optional<std::string> begin;
    std::string low, high;
    bool low_open = false, high_open = false, reverse = false, unique = false;

    /// Entries that begin with the parts of this tuple.
    static IndexQuestion find(std::string equal) {
        IndexQuestion question;
        question.equal = std::move(equal);
        return question;
    }
    /// Entries in which the string after the tuple has this beginning.
    static IndexQuestion prefix(std::string begin, std::string equal = {}) {
        IndexQuestion question = find(std::move(equal));
        question.begin = std::move(begin);
        return question;
    }
    /// Entries within bounds, inclusive.
    static IndexQuestion range(std::string low, std::string high) {
        IndexQuestion question;
        question.low = std::move(low);
        question.high = std::move(high);
        return question;
    }
};

/// An entry of an index.
struct IndexEntry {
    /// A JSON array; empty if keys were not requested.
    std::string key;
    std::string id;
    /// Nothing if values were not requested.
    std::optional<std::string> data;
    /// If values were requested: whether the bytes are present, as in Value.
    llvs_value_state state = LLVS_VALUE_HERE;
};

/// One page of the entries found; see llvs_index_page.
struct IndexPage {
    std::vector<IndexEntry> entries;
    /// Where the next page begins; empty if this is the last.
    std::string cursor;
    /// With LLVS_INDEX_COUNT: how many entries match on all pages.
    std::uint64_t total = 0;
};

/// How to open an index whose keys a function computes; see llvs_computed_index_options.
struct ComputedIndexOptions {
    std::string prefix;
    std::uint32_t parts = 1;
    /// With a version other than 0: a name for the function, under which the index is stored in the caches of the store.
    std::string name;
    std::uint32_t version = 0;
};

/// An index; see llvs_index. Safe from all threads.
class Index {
public:
    /// Opens an index that the store's rules define under a name.
    static Index named(const Store &store, std::string_view name) { return Index(store, name, {}, nullptr); }
    /// Opens an index by its definition, as JSON.
    static Index defined(const Store &store, std::string_view definition) { return Index(store, {}, definition, nullptr); }
    /// Opens an index of a coordinator's store: queries without a version use the current version. With `warm`, a thread of the library
    /// builds the index at each new current version.
    static Index named(const Coordinator &coordinator, std::string_view name, bool warm = false) {
        return Index(coordinator.store(), name, {}, coordinator.raw(), warm);
    }
    /// Computes the keys of a value, each a JSON array, from its id and its bytes; see llvs_index_keys_fn. Several threads may call it at
    /// once; if it throws, the query throws the same exception.
    using Keys = std::function<std::vector<std::string>(std::string_view id, std::string_view data)>;
    /// Opens an index whose keys a function computes, for values of any kind; see llvs_computed_index_open.
    static Index computed(const Store &store, const ComputedIndexOptions &options, Keys keys) {
        return Index(store, options, std::move(keys), nullptr, false);
    }
    /// Opens such an index with a coordinator: queries without a version use its current version; see llvs_index_options.
    static Index computed(const Coordinator &coordinator, const ComputedIndexOptions &options, Keys keys, bool warm = false) {
        return Index(coordinator.store(), options, std::move(keys), coordinator.raw(), warm);
    }

    /// Returns one page at a version; an empty one: the current version.
    IndexPage page(const IndexQuestion &question, std::string_view at = {}, llvs_index_want want = 0, std::string_view after = {},
                   std::uint64_t limit = 0, const llvs_control *control = nullptr) const {
        llvs_index_question asked = LLVS_INDEX_QUESTION_INIT;
        asked.want = want;
        asked.equal = detail::bytes(question.equal);
        if (question.begin) {
            asked.has_begin = 1;
            asked.begin = detail::bytes(*question.begin);
        }
        asked.low = detail::bytes(question.low);
        asked.high = detail::bytes(question.high);
        asked.after = detail::bytes(after);
        asked.limit = limit;
        asked.low_open = question.low_open;
        asked.high_open = question.high_open;
        asked.reverse = question.reverse;
        asked.unique = question.unique;
        llvs_index_page *found = nullptr;
        detail::run([&](llvs_error **error) { return llvs_index_find(raw(), detail::bytes(at), &asked, control, &found, error); });
        detail::Handle<llvs_index_page, llvs_index_page_free> owned(found);
        IndexPage page;
        page.total = found->total;
        page.cursor = detail::string(found->cursor);
        const std::uint8_t *id = found->ids.data, *key = found->keys.data;
        const std::uint8_t *data = found->values ? found->values->data.data : nullptr;
        for (std::size_t i = 0; i < found->count; i++) {
            IndexEntry entry;
            entry.id = text(id, found->id_sizes[i]);
            id += found->id_sizes[i] + 1;
            if (found->key_sizes) {
                entry.key = text(key, found->key_sizes[i]);
                key += found->key_sizes[i] + 1;
            }
            if (found->values) {
                entry.data = text(data, found->values->data_sizes[i]);
                data += found->values->data_sizes[i];
                if (found->values->states) entry.state = found->values->states[i];
            }
            page.entries.push_back(std::move(entry));
        }
        return page;
    }
    /// Calls the function with each entry, page by page.
    template <typename Body>
    void for_each(const IndexQuestion &question, Body body, std::string_view at = {}, llvs_index_want want = 0) const {
        std::string after;
        do {
            IndexPage found = page(question, at, want, after);
            after = std::move(found.cursor);
            for (IndexEntry &entry : found.entries) body(std::move(entry));
        } while (!after.empty());
    }
    /// Returns the ids found, in order of the keys.
    std::vector<std::string> ids(const IndexQuestion &question, std::string_view at = {}) const {
        std::vector<std::string> ids;
        for_each(question, [&](IndexEntry entry) { ids.push_back(std::move(entry.id)); }, at);
        return ids;
    }
    /// Returns how many entries match.
    std::uint64_t count(const IndexQuestion &question = {}, std::string_view at = {}) const {
        return page(question, at, LLVS_INDEX_COUNT, {}, 1).total;
    }
    /// Returns the keys under which a value is in the index, or why it is not, as JSON; see llvs_index_explain.
    std::string explain(std::string_view id, std::string_view at = {}) const {
        llvs_buffer json;
        detail::run([&](llvs_error **error) { return llvs_index_explain(raw(), detail::bytes(at), detail::bytes(id), &json, error); });
        detail::Handle<llvs_buffer, llvs_buffer_dispose> owned(&json);
        return text(json.data, json.size);
    }
    /// The handle, for calls of the C interface; this object owns it.
    llvs_index *raw() const { return handle_.get(); }

private:
    Index(const Store &store, std::string_view name, std::string_view definition, llvs_coordinator *coordinator, bool warm = false) {
        llvs_index_options options = LLVS_INDEX_OPTIONS_INIT;
        options.name = detail::bytes(name);
        options.definition = detail::bytes(definition);
        options.coordinator = coordinator;
        options.warm = warm;
        llvs_index *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_index_open(store.raw(), &options, &raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    Index(const Store &store, const ComputedIndexOptions &given, Keys keys, llvs_coordinator *coordinator, bool warm) {
        llvs_computed_index_options options = LLVS_COMPUTED_INDEX_OPTIONS_INIT;
        options.prefix = detail::bytes(given.prefix);
        options.parts = given.parts;
        options.name = detail::bytes(given.name);
        options.callback_version = given.version;
        options.coordinator = coordinator;
        options.warm = warm;
        llvs_index *raw = nullptr;
        auto *payload = new Keys(std::move(keys));
        detail::run([&](llvs_error **error) {
            return llvs_computed_index_open(store.raw(), &options, give, payload, detail::delete_payload<Keys>, &raw, error);
        });
        handle_ = decltype(handle_)(raw);
    }
    static llvs_status give(void *payload, const llvs_bytes *id, const llvs_bytes *data, llvs_index_keys *keys, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status {
            auto view = [](const llvs_bytes &bytes) { return std::string_view(reinterpret_cast<const char *>(bytes.data), bytes.size); };
            for (const std::string &tuple : (*static_cast<Keys *>(payload))(view(*id), view(*data))) {
                llvs_status status = llvs_index_keys_add(keys, detail::bytes(tuple), error);
                if (status != LLVS_OK) return status;
            }
            return LLVS_OK;
        });
    }
    static std::string text(const std::uint8_t *data, std::uint64_t size) {
        return size ? std::string(reinterpret_cast<const char *>(data), static_cast<std::size_t>(size)) : std::string();
    }
    detail::Handle<llvs_index, llvs_index_free> handle_;
};

} // namespace llvs

#endif
