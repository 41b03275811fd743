// llvs.hpp - llvs.h for C++17: handles that release themselves, errors as exceptions, string_view for bytes.
//
// Thin and header-only: each method is one call of llvs.h, whose comments say what it does, costs and throws.
// Handles are movable and not copyable; a moved-from or closed one throws llvs::Error (INVALID_ARGUMENT).
// Bytes are std::string_view in and std::string out (they may hold any bytes, NUL too).
#ifndef LLVS_HPP
#define LLVS_HPP

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "llvs.h"

namespace llvs {

namespace detail {

inline llvs_bytes bytes(std::string_view text) { return llvs_bytes_make(text.data(), text.size()); }
inline std::string string(llvs_bytes bytes) { return bytes.size ? std::string(reinterpret_cast<const char *>(bytes.data), bytes.size) : std::string(); }
inline std::string string(const llvs_version_id &id) { return std::string(id.text, id.size); }

/// The unique owner of a C handle.
template <typename T, void (*Free)(T *)>
class Handle {
public:
    Handle() = default;
    explicit Handle(T *raw) : raw_(raw) {}
    T *get() const { return raw_.get(); }
    explicit operator bool() const { return raw_ != nullptr; }

private:
    struct Deleter { void operator()(T *raw) const { Free(raw); } };
    std::unique_ptr<T, Deleter> raw_;
};

} // namespace detail

/// What a call of the library threw: a code, a message, and what it was about.
class Error : public std::runtime_error {
public:
    explicit Error(llvs_error *error)
        : std::runtime_error(llvs_error_message(error)), code_(llvs_error_code(error)), user_code_(llvs_error_user_code(error)),
          value_id_(detail::string(llvs_error_value_id(error))), version_id_(detail::string(llvs_error_version_id(error))),
          path_(detail::string(llvs_error_path(error))) {
        llvs_error_free(error);
    }
    /// One of LLVS_ERROR_...
    llvs_status code() const noexcept { return code_; }
    std::int64_t user_code() const noexcept { return user_code_; }
    const std::string &value_id() const noexcept { return value_id_; }
    const std::string &version_id() const noexcept { return version_id_; }
    const std::string &path() const noexcept { return path_; }

private:
    llvs_status code_;
    std::int64_t user_code_;
    std::string value_id_, version_id_, path_;
};

namespace detail {

inline void check(llvs_status status, llvs_error *error) { if (status < 0) throw Error(error); }

/// Calls `call(&error)` and throws what it reports.
template <typename Call>
void run(Call call) {
    llvs_error *error = nullptr;
    llvs_status status = call(&error);
    check(status, error);
}

/// Runs a callback of the host. An exception of it is kept and thrown from the call that made the callback run.
class Kept {
public:
    template <typename Body>
    llvs_status guard(llvs_error **error, Body body) {
        try {
            return body();
        } catch (const std::exception &thrown) {
            pending_ = std::current_exception();
            *error = llvs_error_make(0, llvs_str(thrown.what()));
        } catch (...) {
            pending_ = std::current_exception();
            *error = llvs_error_make(0, llvs_str("a callback threw something that is no std::exception"));
        }
        return LLVS_ERROR_USER;
    }
    template <typename Call>
    void run(Call call) {
        llvs_error *error = nullptr;
        llvs_status status = call(&error);
        std::exception_ptr pending = std::exchange(pending_, nullptr);
        if (status == LLVS_ERROR_USER && pending) {
            llvs_error_free(error);
            std::rethrow_exception(pending);
        }
        check(status, error);
    }

private:
    std::exception_ptr pending_;
};

} // namespace detail

/// The id of a version.
using VersionID = std::string;

struct Version {
    VersionID id;
    std::vector<VersionID> predecessors;
    /// Seconds since 1970.
    double timestamp = 0;
    std::uint64_t value_data_size = 0;
    std::map<std::string, std::string> metadata;
    std::optional<std::string> branch;

    explicit Version(const llvs_version_info &info)
        : id(detail::string(info.id)), timestamp(info.timestamp), value_data_size(info.value_data_size) {
        for (std::uint32_t i = 0; i < info.predecessor_count; i++) predecessors.push_back(detail::string(info.predecessors[i]));
        for (std::size_t i = 0; i < info.metadata_count; i++) metadata[detail::string(info.metadata[i].key)] = detail::string(info.metadata[i].value);
        if (info.branch.data) branch = detail::string(info.branch);
    }
};

struct Value {
    std::string id, data;
    VersionID stored_version;
};

/// A change to make, or one that was recorded.
struct Change {
    llvs_change_kind kind;
    std::string id, data;
    VersionID stored_version;

    static Change insert(std::string id, std::string data) { return {LLVS_CHANGE_INSERT, std::move(id), std::move(data), {}}; }
    static Change update(std::string id, std::string data) { return {LLVS_CHANGE_UPDATE, std::move(id), std::move(data), {}}; }
    static Change remove(std::string id) { return {LLVS_CHANGE_REMOVE, std::move(id), {}, {}}; }
    static Change preserve(std::string id, VersionID stored) { return {LLVS_CHANGE_PRESERVE, std::move(id), {}, std::move(stored)}; }
    static Change preserve_removal(std::string id) { return {LLVS_CHANGE_PRESERVE_REMOVAL, std::move(id), {}, {}}; }
};

namespace detail {

inline std::vector<llvs_change> borrow(const std::vector<Change> &changes) {
    std::vector<llvs_change> borrowed;
    borrowed.reserve(changes.size());
    for (const Change &change : changes)
        borrowed.push_back({change.kind, 0, bytes(change.id), bytes(change.data), bytes(change.stored_version)});
    return borrowed;
}

inline std::vector<Version> take(llvs_version_list *raw) {
    Handle<llvs_version_list, llvs_version_list_free> list(raw);
    std::vector<Version> versions;
    for (std::size_t i = 0; i < llvs_version_list_count(raw); i++) versions.emplace_back(*llvs_version_list_at(raw, i));
    return versions;
}
inline std::optional<Version> take_one(llvs_version_list *raw) {
    std::vector<Version> versions = take(raw);
    return versions.empty() ? std::nullopt : std::optional<Version>(std::move(versions.front()));
}
inline std::vector<std::optional<Value>> take(llvs_value_list *raw) {
    Handle<llvs_value_list, llvs_value_list_free> list(raw);
    std::vector<std::optional<Value>> values;
    for (std::size_t i = 0; i < llvs_value_list_count(raw); i++) {
        const llvs_value_info *info = llvs_value_list_at(raw, i);
        if (info->present) values.emplace_back(Value{string(info->id), string(info->data), string(info->stored_version)});
        else values.emplace_back(std::nullopt);
    }
    return values;
}

/// Metadata and its borrowed form.
struct Entries {
    std::vector<llvs_metadata_entry> entries;
    explicit Entries(const std::map<std::string, std::string> &metadata) {
        for (const auto &entry : metadata) entries.push_back({bytes(entry.first), bytes(entry.second)});
    }
};

} // namespace detail

/// What an arbiter sees; lives for its call only.
class Merge {
public:
    explicit Merge(const llvs_merge *raw) : raw_(raw) {}
    Version first() const { return Version(*llvs_merge_first(raw_)); }
    Version second() const { return Version(*llvs_merge_second(raw_)); }
    Version ours() const { return Version(*llvs_merge_ours(raw_)); }
    Version theirs() const { return Version(*llvs_merge_theirs(raw_)); }
    std::size_t size() const { return llvs_merge_fork_count(raw_); }
    const llvs_fork &fork(std::size_t index) const {
        const llvs_fork *fork = llvs_merge_fork_at(raw_, index);
        if (!fork) throw std::out_of_range("a merge has no fork of this index");
        return *fork;
    }
    /// The bytes on a side of a fork; nothing when it is absent there.
    std::optional<std::string> value(const llvs_fork &fork, llvs_side side) const {
        llvs_bytes stored = side == LLVS_SIDE_FIRST ? fork.first : side == LLVS_SIDE_SECOND ? fork.second : fork.ancestor;
        if (stored.size == 0) return std::nullopt;
        llvs_buffer buffer;
        detail::run([&](llvs_error **error) { return llvs_store_value_by_reference(llvs_merge_store(raw_), fork.id, stored, &buffer, error); });
        if (!buffer.data) return std::nullopt;
        std::string data(reinterpret_cast<const char *>(buffer.data), buffer.size);
        llvs_buffer_dispose(&buffer);
        return data;
    }
    const llvs_merge *raw() const { return raw_; }

private:
    const llvs_merge *raw_;
};

/// Decides the conflicts of merges.
class Arbiter {
public:
    /// Returns the changes; nothing means: pass on to the fallback.
    using Resolve = std::function<std::optional<std::vector<Change>>(const Merge &)>;

    static Arbiter builtin(llvs_arbiter_kind kind) {
        llvs_arbiter *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_arbiter_builtin(kind, &raw, error); });
        return Arbiter(raw, nullptr);
    }
    static Arbiter most_recent_change() { return builtin(LLVS_ARBITER_MOST_RECENT_CHANGE); }
    static Arbiter most_recent_branch() { return builtin(LLVS_ARBITER_MOST_RECENT_BRANCH); }
    static Arbiter ours() { return builtin(LLVS_ARBITER_OURS); }
    static Arbiter theirs() { return builtin(LLVS_ARBITER_THEIRS); }

    /// An exception of the function comes out of the merge unchanged (from one merge at a time).
    explicit Arbiter(Resolve resolve, const Arbiter *fallback = nullptr) : Arbiter(nullptr, std::make_shared<State>()) {
        state_->resolve = std::move(resolve);
        llvs_arbiter *raw = nullptr;
        auto *payload = new std::shared_ptr<State>(state_);
        detail::run([&](llvs_error **error) {
            return llvs_arbiter_create(call, payload, [](void *p) { delete static_cast<std::shared_ptr<State> *>(p); },
                                       fallback ? fallback->raw() : nullptr, &raw, error);
        });
        handle_ = decltype(handle_)(raw);
    }

    llvs_arbiter *raw() const { return handle_.get(); }
    /// Runs a call that may end in this arbiter.
    template <typename Call>
    void run(Call call) const { state_ ? state_->kept.run(call) : detail::run(call); }

private:
    struct State { Resolve resolve; detail::Kept kept; };
    Arbiter(llvs_arbiter *raw, std::shared_ptr<State> state) : state_(std::move(state)), handle_(raw) {}

    static llvs_status call(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
        State &state = **static_cast<std::shared_ptr<State> *>(payload);
        return state.kept.guard(error, [&]() -> llvs_status {
            std::optional<std::vector<Change>> changes = state.resolve(Merge(merge));
            if (!changes) return LLVS_PASS;
            std::vector<llvs_change> borrowed = detail::borrow(*changes);
            return llvs_resolution_add(resolution, borrowed.data(), borrowed.size(), sizeof(llvs_change), error);
        });
    }

    std::shared_ptr<State> state_;
    detail::Handle<llvs_arbiter, llvs_arbiter_free> handle_;
};

struct VersionOptions {
    std::string id, branch;
    std::map<std::string, std::string> metadata;
};

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
    /// Takes over a handle.
    explicit Store(llvs_store *raw) : handle_(raw) {}

    void close() { detail::run([&](llvs_error **error) { return llvs_store_close(raw(), error); }); }
    llvs_store *raw() const { return handle_.get(); }

    VersionID make_version(std::string_view predecessor, const std::vector<Change> &changes, const VersionOptions &more = {}) {
        std::vector<llvs_change> borrowed = detail::borrow(changes);
        detail::Entries entries(more.metadata);
        llvs_version_options options = LLVS_VERSION_OPTIONS_INIT;
        options.id = detail::bytes(more.id);
        options.branch = detail::bytes(more.branch);
        options.metadata = entries.entries.data();
        options.metadata_count = entries.entries.size();
        llvs_version_id id;
        detail::run([&](llvs_error **error) {
            return llvs_store_make_version(raw(), detail::bytes(predecessor), borrowed.data(), borrowed.size(), sizeof(llvs_change), &options, &id, nullptr, error);
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
    std::optional<Version> most_recent_head() const { return one([&](auto out, auto error) { return llvs_store_most_recent_head(raw(), out, error); }); }
    std::vector<Version> heads() const { return many([&](auto out, auto error) { return llvs_store_heads(raw(), out, error); }); }
    std::vector<Version> versions_of(std::string_view id) const { return many([&](auto out, auto error) { return llvs_store_versions_of(raw(), detail::bytes(id), out, error); }); }
    std::vector<Version> merge_bases(std::string_view a, std::string_view b) const {
        return many([&](auto out, auto error) { return llvs_store_merge_bases(raw(), detail::bytes(a), detail::bytes(b), out, error); });
    }
    bool is_ancestor(std::string_view ancestor, std::string_view descendant) const {
        bool answer = false;
        detail::run([&](llvs_error **error) { return llvs_store_is_ancestor(raw(), detail::bytes(ancestor), detail::bytes(descendant), &answer, error); });
        return answer;
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

    Version merge(std::string_view ours, std::string_view theirs, const Arbiter &arbiter = Arbiter::most_recent_change()) {
        llvs_version_list *list = nullptr;
        arbiter.run([&](llvs_error **error) { return llvs_store_merge(raw(), detail::bytes(ours), detail::bytes(theirs), arbiter.raw(), nullptr, &list, error); });
        return *detail::take_one(list);
    }
    /// Nothing when nothing changed.
    std::optional<Version> merge_heads(std::string_view into, const Arbiter &arbiter = Arbiter::most_recent_change()) {
        llvs_version_list *list = nullptr;
        arbiter.run([&](llvs_error **error) { return llvs_store_merge_heads(raw(), detail::bytes(into), arbiter.raw(), nullptr, &list, error); });
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
            for (std::size_t i = 0; i < llvs_change_list_count(raw_page); i++) {
                const llvs_change_info *info = llvs_change_list_at(raw_page, i);
                changes.push_back({info->kind, detail::string(info->id), detail::string(info->data), detail::string(info->stored_version)});
            }
        }
    }

    detail::Handle<llvs_store, llvs_store_free> handle_;
};

struct ExchangeResult {
    struct Problem { llvs_status code; std::string name, message; };
    std::vector<VersionID> retrieved, sent;
    std::vector<Problem> problems;

    /// Takes over a result.
    explicit ExchangeResult(llvs_exchange_result *raw) {
        detail::Handle<llvs_exchange_result, llvs_exchange_result_free> handle(raw);
        std::size_t count = 0;
        const llvs_bytes *ids = llvs_exchange_result_retrieved(raw, &count);
        for (std::size_t i = 0; i < count; i++) retrieved.push_back(detail::string(ids[i]));
        ids = llvs_exchange_result_sent(raw, &count);
        for (std::size_t i = 0; i < count; i++) sent.push_back(detail::string(ids[i]));
        for (std::size_t i = 0; i < llvs_exchange_result_problem_count(raw); i++) {
            const llvs_problem *problem = llvs_exchange_result_problem_at(raw, i);
            problems.push_back({problem->code, detail::string(problem->name), detail::string(problem->message)});
        }
    }
};

/// Moves versions between a store and a place that others reach.
class Exchange {
public:
    static llvs_exchange_options options() { return LLVS_EXCHANGE_OPTIONS_INIT; }

    Exchange(const Store &store, std::string_view url, const llvs_exchange_options &options = Exchange::options()) {
        llvs_exchange *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_open(store.raw(), detail::bytes(url), &options, &raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    ExchangeResult retrieve(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_retrieve(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    ExchangeResult send(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_send(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    llvs_exchange *raw() const { return handle_.get(); }

private:
    detail::Handle<llvs_exchange, llvs_exchange_free> handle_;
};

/// A store, a current version, exchanges and an arbiter.
class Coordinator {
public:
    static llvs_coordinator_options options() { return LLVS_COORDINATOR_OPTIONS_INIT; }

    explicit Coordinator(std::string_view path, const llvs_coordinator_options &options = Coordinator::options()) {
        llvs_coordinator *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_coordinator_open(detail::bytes(path), &options, &raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    Coordinator(std::string_view path, std::string_view exchange_url) : Coordinator(path, with_url(exchange_url)) {}

    VersionID current_version() const {
        llvs_version_id id;
        detail::run([&](llvs_error **error) { return llvs_coordinator_current_version(raw(), &id, error); });
        return detail::string(id);
    }
    /// The new version; empty when there was nothing to save.
    VersionID save(const std::vector<Change> &changes) {
        std::vector<llvs_change> borrowed = detail::borrow(changes);
        llvs_version_id id;
        detail::run([&](llvs_error **error) {
            return llvs_coordinator_save(raw(), borrowed.data(), borrowed.size(), sizeof(llvs_change), nullptr, &id, nullptr, error);
        });
        return detail::string(id);
    }
    std::optional<Value> value(std::string_view id, std::string_view at = {}) const {
        llvs_buffer buffer;
        llvs_version_id stored;
        detail::run([&](llvs_error **error) { return llvs_coordinator_value(raw(), detail::bytes(id), detail::bytes(at), &buffer, &stored, error); });
        if (!buffer.data) return std::nullopt;
        Value value{std::string(id), std::string(reinterpret_cast<const char *>(buffer.data), buffer.size), detail::string(stored)};
        llvs_buffer_dispose(&buffer);
        return value;
    }
    ExchangeResult exchange(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_coordinator_exchange(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    /// Whether the current version moved.
    bool merge() {
        bool changed = false;
        detail::run([&](llvs_error **error) { return llvs_coordinator_merge(raw(), nullptr, &changed, error); });
        return changed;
    }
    Store store() const {
        llvs_store *raw_store = nullptr;
        detail::run([&](llvs_error **error) { return llvs_coordinator_store(raw(), &raw_store, error); });
        return Store(raw_store);
    }
    void close() { detail::run([&](llvs_error **error) { return llvs_coordinator_close(raw(), error); }); }
    llvs_coordinator *raw() const { return handle_.get(); }

private:
    static llvs_coordinator_options with_url(std::string_view url) {
        llvs_coordinator_options made = options();
        made.exchange_url = detail::bytes(url);
        return made;
    }
    detail::Handle<llvs_coordinator, llvs_coordinator_free> handle_;
};

} // namespace llvs

#endif
