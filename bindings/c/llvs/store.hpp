// The store.
// Part of llvs.hpp.
#ifndef LLVS_STORE_HPP
#define LLVS_STORE_HPP

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control.hpp"
#include "documents.hpp"
#include "host.hpp"
#include "merge.hpp"
#include "options.hpp"
#include "reports.hpp"
#include "values.hpp"

namespace llvs {

/// A store. Safe from all threads.
class Store {
public:
    static llvs_store_options options() { return LLVS_STORE_OPTIONS_INIT; }

    explicit Store(std::string_view path, const llvs_store_options &options = Store::options()) {
        llvs_store *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_open(detail::bytes(path), &options, &raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    /// Opens a store in memory.
    static Store memory() {
        llvs_store_options options = Store::options();
        options.storage = LLVS_STORAGE_MEMORY;
        return Store("", options);
    }
    /// Opens a store whose records are in a storage of the host, which it keeps alive.
    static Store on(std::shared_ptr<Storage> storage, llvs_store_options options = Store::options(), std::string_view name = {}) {
        HostStorage host(std::move(storage), name);
        options.storage = LLVS_STORAGE_HOST;
        options.host_storage = host.raw();
        return Store("", options);
    }
    /// Takes ownership of a handle.
    explicit Store(llvs_store *raw) : handle_(raw) {}

    void close() { detail::run([&](llvs_error **error) { return llvs_store_close(raw(), error); }); }
    /// The handle, for calls of the C interface; this object owns it.
    llvs_store *raw() const { return handle_.get(); }

    VersionID make_version(std::string_view predecessor, const std::vector<Change> &changes, const VersionOptions &more = {}) {
        std::vector<llvs_change> borrowed = detail::borrow(changes);
        detail::BorrowedOptions options(more);
        llvs_version_id id;
        detail::run([&](llvs_error **error) {
            return llvs_store_make_version(raw(), detail::bytes(predecessor), borrowed.data(), borrowed.size(), sizeof(llvs_change),
                                           options.raw(), &id, nullptr, error);
        });
        return detail::string(id);
    }

    std::optional<Value> value(std::string_view id, std::string_view at) const {
        llvs_buffer buffer;
        llvs_version_id stored;
        detail::run(
            [&](llvs_error **error) { return llvs_store_value(raw(), detail::bytes(id), detail::bytes(at), &buffer, &stored, error); });
        if (!buffer.data) return std::nullopt;
        Value value{std::string(id), std::string(reinterpret_cast<const char *>(buffer.data), buffer.size), detail::string(stored)};
        llvs_buffer_dispose(&buffer);
        return value;
    }
    /// Opens the value for reading in parts; nothing if there is none.
    std::optional<ValueReader> open_value(std::string_view id, std::string_view at) const {
        llvs_value_reader *reader = nullptr;
        std::uint64_t size = 0;
        llvs_version_id stored;
        detail::run([&](llvs_error **error) {
            return llvs_store_open_value(raw(), detail::bytes(id), detail::bytes(at), &reader, &size, &stored, error);
        });
        return detail::reader(reader, size, stored);
    }
    std::vector<std::optional<Value>> values(const std::vector<std::string> &ids, std::string_view at) const {
        std::vector<llvs_bytes> borrowed;
        for (const std::string &id : ids) borrowed.push_back(detail::bytes(id));
        llvs_value_list *list = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_store_values(raw(), borrowed.data(), borrowed.size(), detail::bytes(at), &list, error);
        });
        return detail::take(list);
    }
    /// Calls the function with each value at a version whose id has the prefix, in byte order of the ids, or the reverse.
    template <typename Body>
    void for_each(std::string_view at, Body body, std::string_view prefix = {}, bool reverse = false) const {
        llvs_range range = LLVS_RANGE_INIT;
        range.prefix = detail::bytes(prefix);
        range.reverse = reverse;
        std::string last;
        for (;;) {
            llvs_value_list *list = nullptr;
            (reverse ? range.before : range.after) = detail::bytes(last);
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

    std::optional<Version> version(std::string_view id) const {
        return one([&](auto out, auto error) { return llvs_store_version(raw(), detail::bytes(id), out, error); });
    }
    std::optional<Version> most_recent_head() const {
        llvs_heads_options options = LLVS_HEADS_OPTIONS_INIT;
        options.limit = 1;
        return one([&](auto out, auto error) { return llvs_store_heads(raw(), &options, out, error); });
    }
    std::vector<Version> heads(const llvs_control *control = nullptr) const {
        llvs_heads_options options = LLVS_HEADS_OPTIONS_INIT;
        options.control = control;
        return many([&](auto out, auto error) { return llvs_store_heads(raw(), &options, out, error); });
    }
    /// Returns the heads that carry this branch name.
    std::vector<Version> heads_on_branch(std::string_view branch, const llvs_control *control = nullptr) const {
        llvs_heads_options options = LLVS_HEADS_OPTIONS_INIT;
        options.branch = detail::bytes(branch);
        options.control = control;
        return many([&](auto out, auto error) { return llvs_store_heads(raw(), &options, out, error); });
    }
    std::vector<Version> versions_of(std::string_view id, const llvs_control *control = nullptr) const {
        return many([&](auto out, auto error) { return llvs_store_versions_of(raw(), detail::bytes(id), control, out, error); });
    }
    /// Returns the versions that have this one as a predecessor, newest first.
    std::vector<Version> successors(std::string_view id, const llvs_control *control = nullptr) const {
        return many([&](auto out, auto error) { return llvs_store_successors(raw(), detail::bytes(id), control, out, error); });
    }
    std::vector<Version> merge_bases(std::string_view a, std::string_view b, const llvs_control *control = nullptr) const {
        return many([&](auto out, auto error) {
            return llvs_store_merge_bases(raw(), detail::bytes(a), detail::bytes(b), control, out, error);
        });
    }
    /// Returns the version that was current at a time, in seconds since 1970; nothing if all are later. See llvs_store_version_at.
    std::optional<Version> version_at(double time, std::string_view head = {}, const llvs_control *control = nullptr) const {
        return one([&](auto out, auto error) { return llvs_store_version_at(raw(), time, detail::bytes(head), control, out, error); });
    }
    bool is_ancestor(std::string_view ancestor, std::string_view descendant, const llvs_control *control = nullptr) const {
        llvs_bool answer = 0;
        detail::run([&](llvs_error **error) {
            return llvs_store_is_ancestor(raw(), detail::bytes(ancestor), detail::bytes(descendant), control, &answer, error);
        });
        return answer != 0;
    }
    /// Returns versions in topological order, newest first: all of them, or those of the options.
    std::vector<Version> history(const HistoryOptions &options = {}) const {
        std::vector<Version> versions;
        walk_history(options, {}, [&](const llvs_version_info &info) { versions.emplace_back(info); });
        return versions;
    }
    /// Returns every version in which a value changed, with the change, newest first.
    std::vector<std::pair<Version, llvs_change_kind>> value_history(std::string_view id, const HistoryOptions &options = {}) const {
        std::vector<std::pair<Version, llvs_change_kind>> versions;
        walk_history(options, id, [&](const llvs_version_info &info) { versions.emplace_back(Version(info), info.change); });
        return versions;
    }
    /// Returns the branches of the heads, each with the newest of its heads.
    std::map<std::string, Version> branches() const {
        std::map<std::string, Version> newest;
        for (Version &head : heads())
            if (head.branch) newest.emplace(*head.branch, head);
        return newest;
    }
    /// Registers a callback for new versions in the store, by whatever process, on a thread of the library.
    Observer observe(std::function<void()> callback) {
        return Observer::make(std::move(callback),
                              [&](void *payload, llvs_free_fn payload_free, llvs_observer **observer, llvs_error **error) {
                                  return llvs_store_observe(raw(), detail::notify, payload, payload_free, observer, error);
                              });
    }
    /// Returns the absolute path of the store; empty for one in memory or in a storage of the host.
    std::string path() const { return detail::string(llvs_store_path(raw())); }
    /// Returns the changes that a version recorded, of values whose ids have the prefix.
    std::vector<Change> changes(std::string_view version, std::string_view prefix = {}, const llvs_control *control = nullptr) const {
        llvs_range range = LLVS_RANGE_INIT;
        range.prefix = detail::bytes(prefix);
        return walk([&](auto out, auto error) { return llvs_store_changes(raw(), detail::bytes(version), &range, control, out, error); });
    }
    /// Returns the changes that lead from the state at `from` to that at `to`, of values whose ids have the prefix.
    std::vector<Change> differences(
        std::string_view from, std::string_view to, std::string_view prefix = {}, const llvs_control *control = nullptr
    ) const {
        llvs_range range = LLVS_RANGE_INIT;
        range.prefix = detail::bytes(prefix);
        return walk([&](auto out, auto error) {
            return llvs_store_differences(raw(), detail::bytes(from), detail::bytes(to), &range, control, out, error);
        });
    }

    Version merge(std::string_view ours, std::string_view theirs, const Arbiter &arbiter = Arbiter::rules(),
                  const MergeOptions &more = {}) {
        detail::BorrowedMergeOptions options(more);
        llvs_version_list *list = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_store_merge(raw(), detail::bytes(ours), detail::bytes(theirs), arbiter.raw(), options.raw(), &list, error);
        });
        return *detail::take_one(list);
    }
    /// Merges heads into a version; returns nothing if nothing changed.
    std::optional<Version> merge_heads(std::string_view into, const Arbiter &arbiter = Arbiter::rules(), const MergeOptions &more = {}) {
        detail::BorrowedMergeOptions options(more);
        llvs_version_list *list = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_store_merge_heads(raw(), detail::bytes(into), arbiter.raw(), options.raw(), &list, error);
        });
        return detail::take_one(list);
    }
    /// Undoes the changes of a version, on top of another, and returns what was undone and what was not.
    Reverted revert(std::string_view version, std::string_view at, const MergeOptions &more = {}) {
        detail::BorrowedMergeOptions options(more);
        llvs_revert_result *made = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_store_revert(raw(), detail::bytes(version), detail::bytes(at), options.raw(), &made, error);
        });
        return detail::take(made);
    }
    /// Applies the changes of a version again, on top of another; see llvs_store_cherry_pick.
    Reverted cherry_pick(std::string_view version, std::string_view onto, const MergeOptions &more = {}) {
        detail::BorrowedMergeOptions options(more);
        llvs_revert_result *made = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_store_cherry_pick(raw(), detail::bytes(version), detail::bytes(onto), options.raw(), &made, error);
        });
        return detail::take(made);
    }
    /// Returns the rules for merging at a version, with others added; see llvs_store_schema.
    Schema schema(std::string_view at, std::string_view adding = {}) const {
        llvs_schema *found = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_store_schema(raw(), detail::bytes(at), detail::bytes(adding), &found, error);
        });
        return detail::take(found);
    }
    /// Lists the conflicts that a merge of two versions by rules would have to decide; see llvs_store_conflicts.
    Conflicts conflicts(std::string_view ours, std::string_view theirs, const ConflictOptions &options = {}) const {
        return conflicts(options, [&](auto how, auto found, auto error) {
            return llvs_store_conflicts(raw(), detail::bytes(ours), detail::bytes(theirs), how, found, error);
        });
    }
    /// Lists the decisions of a merge version; see llvs_store_explain.
    Conflicts explain(std::string_view version, const ConflictOptions &options = {}) const {
        return conflicts(options, [&](auto how, auto found, auto error) {
            return llvs_store_explain(raw(), detail::bytes(version), how, found, error);
        });
    }
    /// Lists the open conflicts at a version; see llvs_store_open_conflicts.
    Conflicts open_conflicts(std::string_view at, const ConflictOptions &options = {}) const {
        return conflicts(options, [&](auto how, auto found, auto error) {
            return llvs_store_open_conflicts(raw(), detail::bytes(at), how, found, error);
        });
    }
    /// Makes the changes that close an open conflict, to save on `at`; see llvs_store_choose.
    std::vector<Change> choose(const Conflict &conflict, llvs_choice choice, std::string_view at) const {
        const llvs_conflict given = detail::borrow(conflict);
        llvs_change_list *list = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_choose(raw(), detail::bytes(at), &given, choice, &list, error); });
        return take_changes(list);
    }
    /// Reads everything again and compares it with its checksums; damage is in the report, not thrown.
    VerifyReport verify(const llvs_control *control = nullptr) const {
        llvs_verify_report *found = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_verify(raw(), control, &found, error); });
        detail::Handle<llvs_verify_report, llvs_verify_report_free> owned(found);
        return {found->versions, found->values, found->pending, detail::damages(found->damages, found->damage_count),
                detail::damages(found->unfinished, found->unfinished_count), found->vouched, found->unvouched, found->forgotten};
    }
    /// Returns counts; see llvs_statistics.
    llvs_statistics statistics(const llvs_control *control = nullptr) const {
        llvs_statistics found = LLVS_STATISTICS_INIT;
        detail::run([&](llvs_error **error) { return llvs_store_statistics(raw(), control, &found, error); });
        return found;
    }
    /// Returns what takes space, by kind, prefix, month and version; see llvs_store_size.
    SizeReport size(const SizeOptions &options = {}, const llvs_control *control = nullptr) const {
        llvs_size_options given = LLVS_SIZE_OPTIONS_INIT;
        given.prefix = detail::bytes(options.prefix);
        given.depth = options.depth;
        given.limit = options.limit;
        given.control = control;
        llvs_size_report *raw_report = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_size(raw(), &given, &raw_report, error); });
        detail::Handle<llvs_size_report, llvs_size_report_free> owned(raw_report);
        const llvs_size_report &found = *raw_report;
        SizeReport report{found.versions, found.unread, found.values, found.value_bytes, found.bytes, found.current_bytes,
                          found.past_bytes, {}};
        for (std::size_t i = 0; i < found.row_count; i++) {
            const llvs_size_row &row = *found.rows[i];
            report.rows.push_back({row.group, detail::string(row.name), row.combined, row.values, row.value_bytes, row.bytes,
                                   row.current_bytes, row.past_bytes});
        }
        return report;
    }
    /// Erases values on this device; see llvs_store_erase.
    EraseReport erase(const EraseOptions &options, const llvs_control *control = nullptr) {
        std::vector<llvs_bytes> ids;
        for (const std::string &id : options.ids) ids.push_back(detail::bytes(id));
        llvs_erase_options given = LLVS_ERASE_OPTIONS_INIT;
        given.dry_run = options.dry_run ? 1 : 0;
        given.ids = ids.data();
        given.id_count = ids.size();
        given.version = detail::bytes(options.version);
        given.containing = detail::bytes(options.containing);
        if (options.replacement) given.replacement = detail::bytes(*options.replacement);
        given.why = detail::bytes(options.why);
        given.signer = detail::bytes(options.signer);
        llvs_erase_report *raw_report = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_erase(raw(), &given, control, &raw_report, error); });
        detail::Handle<llvs_erase_report, llvs_erase_report_free> owned(raw_report);
        const llvs_erase_report &found = *raw_report;
        auto texts = [](const llvs_bytes *start, std::size_t count) {
            std::vector<std::string> copied;
            for (std::size_t i = 0; i < count; i++) copied.push_back(detail::string(start[i]));
            return copied;
        };
        return {found.values,
                found.versions,
                found.bytes,
                found.copies,
                found.rewritten,
                found.unread,
                texts(found.orders, found.order_count),
                texts(found.made, found.made_count),
                texts(found.waiting, found.waiting_count),
                places(found.places, found.place_count)};
    }
    /// Forgets the values that the policy of the store does not keep; see llvs_store_forget.
    ForgetReport forget(const ForgetOptions &options = {}, const llvs_control *control = nullptr) {
        llvs_forget_options given = LLVS_FORGET_OPTIONS_INIT;
        given.dry_run = options.dry_run ? 1 : 0;
        given.policy = detail::bytes(options.policy);
        given.control = control;
        llvs_forget_report *raw_report = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_forget(raw(), &given, &raw_report, error); });
        detail::Handle<llvs_forget_report, llvs_forget_report_free> owned(raw_report);
        const llvs_forget_report &found = *raw_report;
        ForgetReport report{found.values, found.versions, found.bytes, found.rewritten, {}, {}};
        for (std::size_t i = 0; i < found.row_count; i++)
            report.rows.push_back({found.rows[i]->rule, found.rows[i]->values, found.rows[i]->bytes});
        for (std::size_t i = 0; i < found.waiting_count; i++) report.waiting.push_back(detail::string(found.waiting[i]));
        return report;
    }
    /// Returns the orders to erase values, with the state of each; see llvs_store_erasures.
    std::vector<Erasure> erasures() const {
        llvs_erasure_list *raw_list = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_erasures(raw(), &raw_list, error); });
        detail::Handle<llvs_erasure_list, llvs_erasure_list_free> owned(raw_list);
        std::vector<Erasure> found;
        for (std::size_t i = 0; i < raw_list->count; i++) {
            const llvs_erasure &one = *raw_list->items[i];
            found.push_back({detail::string(one.id), detail::string(one.version), detail::string(one.made), detail::string(one.why),
                             one.values, one.followed != 0, one.state, one.of_other != 0, one.due,
                             places(one.places, one.place_count), one.signatures, one.needed});
        }
        return found;
    }
    /// Follows, or keeps the bytes of, an order of another device; see llvs_store_decide_erasure.
    void decide_erasure(std::string_view order, llvs_erasure_decision decision) {
        detail::run([&](llvs_error **error) { return llvs_store_decide_erasure(raw(), detail::bytes(order), decision, error); });
    }
    /// Signs an order to erase as a further steward, and returns the id of the order with the signature; see llvs_store_sign_erasure.
    std::string sign_erasure(std::string_view order, std::string_view signer) {
        return detail::taken([&](llvs_buffer *id, llvs_error **error) {
            return llvs_store_sign_erasure(raw(), detail::bytes(order), detail::bytes(signer), id, error);
        });
    }
    /// Orders that other stewards sign from now on, and returns the id of the order; see llvs_store_change_stewards.
    std::string change_stewards(std::string_view policy, std::string_view signer) {
        return detail::taken([&](llvs_buffer *id, llvs_error **error) {
            return llvs_store_change_stewards(raw(), detail::bytes(policy), detail::bytes(signer), id, error);
        });
    }
    /// Returns the public key of a steward; see llvs_steward_key.
    static std::string steward_key(std::string_view seed) {
        return detail::taken([&](llvs_buffer *key, llvs_error **error) { return llvs_steward_key(detail::bytes(seed), key, error); });
    }
    /// Sets whose orders to erase count on this device, and what it keeps; see llvs_store_set_forgetting.
    void set_forgetting(std::string_view policy, const std::vector<std::string> &secrets = {}) {
        std::vector<llvs_bytes> given;
        for (const std::string &secret : secrets) given.push_back(detail::bytes(secret));
        detail::run([&](llvs_error **error) {
            return llvs_store_set_forgetting(raw(), detail::bytes(policy), given.data(), given.size(), error);
        });
    }
    /// Returns the policy of this device as JSON, without its secrets; see llvs_store_forgetting.
    std::string forgetting() const {
        return detail::taken([&](llvs_buffer *policy, llvs_error **error) { return llvs_store_forgetting(raw(), policy, error); });
    }
    /// Reads versions that other processes or handles added, and returns how many.
    std::uint64_t reload(const llvs_control *control = nullptr) {
        std::uint64_t added = 0;
        detail::run([&](llvs_error **error) { return llvs_store_reload(raw(), control, &added, error); });
        return added;
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
    static std::vector<ErasurePlace> places(const llvs_erasure_place *const *start, std::size_t count) {
        std::vector<ErasurePlace> copied;
        for (std::size_t i = 0; i < count; i++) {
            copied.push_back({detail::string(start[i]->name), start[i]->reach, start[i]->reason, start[i]->last_seen});
        }
        return copied;
    }
    template <typename Body>
    void walk_history(const HistoryOptions &options, std::string_view value_id, Body body) const {
        std::vector<llvs_bytes> from, hiding;
        for (const VersionID &id : options.from) from.push_back(detail::bytes(id));
        for (const VersionID &id : options.hiding) hiding.push_back(detail::bytes(id));
        llvs_history_options raw_options = LLVS_HISTORY_OPTIONS_INIT;
        raw_options.from = from.data();
        raw_options.from_count = from.size();
        raw_options.hiding = hiding.data();
        raw_options.hiding_count = hiding.size();
        raw_options.branch = detail::bytes(options.branch);
        raw_options.prefix = detail::bytes(options.prefix);
        raw_options.value_id = detail::bytes(value_id);
        llvs_history_cursor *raw_cursor = nullptr;
        detail::run([&](llvs_error **error) { return llvs_store_history(raw(), &raw_options, nullptr, &raw_cursor, error); });
        detail::Handle<llvs_history_cursor, llvs_history_cursor_free> cursor(raw_cursor);
        for (;;) {
            llvs_version_list *page = nullptr;
            detail::run([&](llvs_error **error) { return llvs_history_cursor_next(raw_cursor, 0, nullptr, &page, error); });
            if (!page) return;
            detail::Handle<llvs_version_list, llvs_version_list_free> held(page);
            for (std::size_t i = 0; i < page->count; i++) body(*page->items[i]);
        }
    }
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
            for (Change &change : take_changes(raw_page)) changes.push_back(std::move(change));
        }
    }
    static std::vector<Change> take_changes(llvs_change_list *list) {
        detail::Handle<llvs_change_list, llvs_change_list_free> owned(list);
        std::vector<Change> changes;
        for (std::size_t i = 0; i < list->count; i++) {
            const llvs_change_info *info = list->items[i];
            changes.push_back({info->kind, detail::string(info->id), detail::string(info->data), detail::string(info->stored_version),
                               info->state});
        }
        return changes;
    }
    template <typename Call>
    Conflicts conflicts(const ConflictOptions &options, Call call) const {
        llvs_conflict_options how = LLVS_CONFLICT_OPTIONS_INIT;
        how.value_id = detail::bytes(options.value_id);
        how.control = options.control;
        std::optional<Arbiter> arbiter;
        if (!options.rules.empty()) arbiter.emplace(Arbiter::rules(options.rules));
        if (arbiter) how.arbiter = arbiter->raw();
        llvs_conflict_list *list = nullptr;
        detail::run([&](llvs_error **error) { return call(&how, &list, error); });
        return detail::take(list);
    }

    detail::Handle<llvs_store, llvs_store_free> handle_;
};

} // namespace llvs

#endif
