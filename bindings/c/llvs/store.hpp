// The store.
// Part of llvs.hpp.
#ifndef LLVS_STORE_HPP
#define LLVS_STORE_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control.hpp"
#include "host.hpp"
#include "merge.hpp"
#include "values.hpp"

namespace llvs {

struct VersionOptions {
    std::string id, branch;
    std::map<std::string, std::string> metadata;
    /// Further values to set, whose bytes come in pieces.
    std::vector<ValueSource> sources;
};

namespace detail {

/// Options in their borrowed form, for one call.
class BorrowedOptions {
public:
    explicit BorrowedOptions(const VersionOptions &options) : entries_(options.metadata), sources_(options.sources) {
        raw_.id = bytes(options.id);
        raw_.branch = bytes(options.branch);
        raw_.metadata = entries_.entries.data();
        raw_.metadata_count = entries_.entries.size();
        sources_.put_into(raw_);
    }
    const llvs_version_options *raw() const { return &raw_; }

private:
    Entries entries_;
    Sources sources_;
    llvs_version_options raw_ = LLVS_VERSION_OPTIONS_INIT;
};

} // namespace detail

/// What a compaction did; see llvs_compaction_report.
struct CompactionReport {
    std::uint64_t folded = 0, made = 0, deleted = 0, bytes_written = 0, bytes_deleted = 0;
    /// What shows that a folder-syncing program carries the store, for which nothing was done.
    std::optional<std::string> sync_marker;
};

/// A store. Safe from all threads.
class Store {
public:
    static llvs_store_options options() { return LLVS_STORE_OPTIONS_INIT; }

    explicit Store(std::string_view path, const llvs_store_options &options = Store::options()) {
        llvs_store *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_open(detail::bytes(path), &options, &raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    /// A store that lives in memory.
    static Store memory() {
        llvs_store_options options = Store::options();
        options.storage = LLVS_STORAGE_MEMORY;
        return Store("", options);
    }
    /// A store whose records rest in a storage of the host, which it keeps alive.
    static Store on(std::shared_ptr<Storage> storage, llvs_store_options options = Store::options(), std::string_view name = {}) {
        HostStorage host(std::move(storage), name);
        options.storage = LLVS_STORAGE_HOST;
        options.host_storage = host.raw();
        return Store("", options);
    }
    /// Takes over a handle.
    explicit Store(llvs_store *raw) : handle_(raw) {}

    void close() { detail::run([&](llvs_error **error) { return llvs_store_close(raw(), error); }); }
    llvs_store *raw() const { return handle_.get(); }

    VersionID make_version(std::string_view predecessor, const std::vector<Change> &changes, const VersionOptions &more = {}) {
        std::vector<llvs_change> borrowed = detail::borrow(changes);
        detail::BorrowedOptions options(more);
        llvs_version_id id;
        detail::run([&](llvs_error **error) {
            return llvs_store_make_version(raw(), detail::bytes(predecessor), borrowed.data(), borrowed.size(), sizeof(llvs_change), options.raw(), &id, nullptr, error);
        });
        return detail::string(id);
    }

    std::optional<Value> value(std::string_view id, std::string_view at) const {
        llvs_buffer buffer;
        llvs_version_id stored;
        detail::run([&](llvs_error **error) { return llvs_store_value(raw(), detail::bytes(id), detail::bytes(at), &buffer, &stored, error); });
        if (!buffer.data) return std::nullopt;
        Value value{std::string(id), std::string(reinterpret_cast<const char *>(buffer.data), buffer.size), detail::string(stored)};
        llvs_buffer_dispose(&buffer);
        return value;
    }
    /// The value, to be read in parts; nothing when there is none.
    std::optional<ValueReader> open_value(std::string_view id, std::string_view at) const {
        llvs_value_reader *reader = nullptr;
        std::uint64_t size = 0;
        llvs_version_id stored;
        detail::run([&](llvs_error **error) { return llvs_store_open_value(raw(), detail::bytes(id), detail::bytes(at), &reader, &size, &stored, error); });
        return detail::reader(reader, size, stored);
    }
    std::vector<std::optional<Value>> values(const std::vector<std::string> &ids, std::string_view at) const {
        std::vector<llvs_bytes> borrowed;
        for (const std::string &id : ids) borrowed.push_back(detail::bytes(id));
        llvs_value_list *list = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_values(raw(), borrowed.data(), borrowed.size(), detail::bytes(at), &list, error); });
        return detail::take(list);
    }
    /// Calls with each value at a version that begins with the prefix, in byte order of the ids.
    template <typename Body>
    void for_each(std::string_view at, Body body, std::string_view prefix = {}) const {
        llvs_range range = LLVS_RANGE_INIT;
        range.prefix = detail::bytes(prefix);
        std::string last;
        for (;;) {
            llvs_value_list *list = nullptr;
            range.after = detail::bytes(last);
            detail::run([&](llvs_error **error) { return llvs_store_enumerate(raw(), detail::bytes(at), &range, &list, error); });
            if (!list) return;
            std::vector<std::optional<Value>> page = detail::take(list);
            last = page.back()->id;
            for (std::optional<Value> &value : page) body(std::move(*value));
        }
    }
    std::uint64_t count(std::string_view at) const {
        std::uint64_t count = 0;
        detail::run([&](llvs_error **error) { return llvs_store_count(raw(), detail::bytes(at), nullptr, &count, error); });
        return count;
    }

    std::optional<Version> version(std::string_view id) const { return one([&](auto out, auto error) { return llvs_store_version(raw(), detail::bytes(id), out, error); }); }
    std::optional<Version> most_recent_head() const {
        llvs_heads_options options = LLVS_HEADS_OPTIONS_INIT;
        options.limit = 1;
        return one([&](auto out, auto error) { return llvs_store_heads(raw(), &options, out, error); });
    }
    std::vector<Version> heads() const { return many([&](auto out, auto error) { return llvs_store_heads(raw(), nullptr, out, error); }); }
    /// Those that carry this branch name.
    std::vector<Version> heads_on_branch(std::string_view branch) const {
        llvs_heads_options options = LLVS_HEADS_OPTIONS_INIT;
        options.branch = detail::bytes(branch);
        return many([&](auto out, auto error) { return llvs_store_heads(raw(), &options, out, error); });
    }
    std::vector<Version> versions_of(std::string_view id) const { return many([&](auto out, auto error) { return llvs_store_versions_of(raw(), detail::bytes(id), out, error); }); }
    std::vector<Version> merge_bases(std::string_view a, std::string_view b) const {
        return many([&](auto out, auto error) { return llvs_store_merge_bases(raw(), detail::bytes(a), detail::bytes(b), out, error); });
    }
    bool is_ancestor(std::string_view ancestor, std::string_view descendant) const {
        llvs_bool answer = 0;
        detail::run([&](llvs_error **error) { return llvs_store_is_ancestor(raw(), detail::bytes(ancestor), detail::bytes(descendant), &answer, error); });
        return answer != 0;
    }
    /// All versions, newest first in topological order.
    std::vector<Version> history() const {
        llvs_history_cursor *raw_cursor = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_history(raw(), nullptr, 0, &raw_cursor, error); });
        detail::Handle<llvs_history_cursor, llvs_history_cursor_free> cursor(raw_cursor);
        std::vector<Version> versions;
        for (;;) {
            llvs_version_list *page = nullptr;
            detail::run([&](llvs_error **error) { return llvs_history_cursor_next(raw_cursor, 0, &page, error); });
            if (!page) return versions;
            for (Version &version : detail::take(page)) versions.push_back(std::move(version));
        }
    }
    std::vector<Change> changes(std::string_view version) const {
        return walk([&](auto out, auto error) { return llvs_store_changes(raw(), detail::bytes(version), out, error); });
    }
    std::vector<Change> differences(std::string_view from, std::string_view to) const {
        return walk([&](auto out, auto error) { return llvs_store_differences(raw(), detail::bytes(from), detail::bytes(to), out, error); });
    }

    Version merge(std::string_view ours, std::string_view theirs, const Arbiter &arbiter = Arbiter::most_recent_change(), const MergeOptions &more = {}) {
        detail::BorrowedMergeOptions options(more);
        llvs_version_list *list = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_merge(raw(), detail::bytes(ours), detail::bytes(theirs), arbiter.raw(), options.raw(), &list, error); });
        return *detail::take_one(list);
    }
    /// Nothing when nothing changed.
    std::optional<Version> merge_heads(std::string_view into, const Arbiter &arbiter = Arbiter::most_recent_change(), const MergeOptions &more = {}) {
        detail::BorrowedMergeOptions options(more);
        llvs_version_list *list = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_merge_heads(raw(), detail::bytes(into), arbiter.raw(), options.raw(), &list, error); });
        return detail::take_one(list);
    }
    Version revert(std::string_view version, std::string_view at) {
        return *one([&](auto out, auto error) { return llvs_store_revert(raw(), detail::bytes(version), detail::bytes(at), nullptr, out, error); });
    }
    CompactionReport compact(const llvs_control *control = nullptr) {
        llvs_compaction_report done = LLVS_COMPACTION_REPORT_INIT;
        detail::run([&](llvs_error **error) { return llvs_store_compact(raw(), control, &done, error); });
        CompactionReport report{done.folded, done.made, done.deleted, done.bytes_written, done.bytes_deleted, std::nullopt};
        if (done.sync_marker.data) {
            detail::Handle<llvs_buffer, llvs_buffer_dispose> marker(&done.sync_marker);
            report.sync_marker.emplace(reinterpret_cast<const char *>(done.sync_marker.data), done.sync_marker.size);
        }
        return report;
    }

private:
    template <typename Call>
    static std::vector<Version> many(Call call) {
        llvs_version_list *list = nullptr;
        detail::run([&](llvs_error **error) { return call(&list, error); });
        return detail::take(list);
    }
    template <typename Call>
    static std::optional<Version> one(Call call) {
        llvs_version_list *list = nullptr;
        detail::run([&](llvs_error **error) { return call(&list, error); });
        return detail::take_one(list);
    }
    template <typename Call>
    static std::vector<Change> walk(Call call) {
        llvs_change_cursor *raw_cursor = nullptr;
        detail::run([&](llvs_error **error) { return call(&raw_cursor, error); });
        detail::Handle<llvs_change_cursor, llvs_change_cursor_free> cursor(raw_cursor);
        std::vector<Change> changes;
        for (;;) {
            llvs_change_list *raw_page = nullptr;
            detail::run([&](llvs_error **error) { return llvs_change_cursor_next(raw_cursor, 0, 1, &raw_page, error); });
            if (!raw_page) return changes;
            detail::Handle<llvs_change_list, llvs_change_list_free> page(raw_page);
            for (std::size_t i = 0; i < raw_page->count; i++) {
                const llvs_change_info *info = raw_page->items[i];
                changes.push_back({info->kind, detail::string(info->id), detail::string(info->data), detail::string(info->stored_version)});
            }
        }
    }

    detail::Handle<llvs_store, llvs_store_free> handle_;
};

} // namespace llvs

#endif
