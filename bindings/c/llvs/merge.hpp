// Arbiters: how the conflicts of merges are decided. Part of llvs.hpp.
#ifndef LLVS_MERGE_HPP
#define LLVS_MERGE_HPP

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model.hpp"

namespace llvs {

/// A merge, as an arbiter sees it; valid during its call only.
class Merge {
public:
    /// For an arbiter: wraps its argument.
    explicit Merge(const llvs_merge *raw) : raw_(raw) {}
    /// The newer of the two versions.
    Version first() const { return Version(*raw_->first); }
    /// The older one.
    Version second() const { return Version(*raw_->second); }
    /// The first argument of the merge.
    Version ours() const { return Version(*raw_->ours); }
    /// The second argument.
    Version theirs() const { return Version(*raw_->theirs); }
    /// How many forks there are.
    std::size_t size() const { return raw_->fork_count; }
    /// Returns the fork at that index. Throws std::out_of_range.
    const llvs_fork &fork(std::size_t index) const {
        if (index >= raw_->fork_count) throw std::out_of_range("a merge has no fork of this index");
        return *raw_->forks[index];
    }
    /// Returns the bytes on a side of a fork; nothing if it is absent there.
    std::optional<std::string> value(const llvs_fork &fork, llvs_side side) const {
        llvs_bytes stored = side == LLVS_SIDE_FIRST ? fork.first : side == LLVS_SIDE_SECOND ? fork.second : fork.ancestor;
        if (stored.size == 0) return std::nullopt;
        llvs_buffer buffer;
        detail::run([&](llvs_error **error) { return llvs_store_value(raw_->store, fork.id, stored, &buffer, nullptr, error); });
        if (!buffer.data) return std::nullopt;
        std::string data(reinterpret_cast<const char *>(buffer.data), buffer.size);
        llvs_buffer_dispose(&buffer);
        return data;
    }
    /// The handle, for calls of the C interface; this object owns it.
    const llvs_merge *raw() const { return raw_; }

private:
    const llvs_merge *raw_;
};

/// A question to a value merger; see llvs_value_question.
struct ValueQuestion {
    std::string id;
    /// A JSON array; "[]" is the value as a whole.
    std::string path;
    /// The bytes of a whole value, or a part as JSON; nothing if it is absent.
    std::optional<std::string> base, newer, older;
};
/// The result of a value merger: the bytes of a whole value, a part as JSON, or nothing for an absent value; or no decision.
struct ValueAnswer {
    std::optional<std::string> data;
    bool passes = false;
    /// The merge decides as if there were no value merger.
    static ValueAnswer pass() { return {std::nullopt, true}; }
};

/// Decides the conflicts of merges.
class Arbiter {
public:
    /// Returns the changes; nothing means: the fallback decides.
    using Resolve = std::function<std::optional<std::vector<Change>>(const Merge &)>;

    static Arbiter builtin(llvs_arbiter_kind kind) {
        llvs_arbiter *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_arbiter_builtin(kind, &raw, error); });
        return Arbiter(raw);
    }
    /// The change stored in the later version wins; see LLVS_ARBITER_MOST_RECENT_CHANGE.
    static Arbiter most_recent_change() { return builtin(LLVS_ARBITER_MOST_RECENT_CHANGE); }
    /// The newer of the two versions wins.
    static Arbiter most_recent_branch() { return builtin(LLVS_ARBITER_MOST_RECENT_BRANCH); }
    /// The first argument's side wins.
    static Arbiter ours() { return builtin(LLVS_ARBITER_OURS); }
    /// The second argument's side wins.
    static Arbiter theirs() { return builtin(LLVS_ARBITER_THEIRS); }

    /// Merges inside values, by these rules, or by the store's if none are given; see llvs_arbiter_rules.
    static Arbiter rules(std::string_view rules = {}) {
        llvs_arbiter *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_arbiter_rules(detail::bytes(rules), &raw, error); });
        return Arbiter(raw);
    }

    /// Merges by rules, and asks the function about conflicts that the rules leave to it; see llvs_value_merger_create. If the function
    /// throws, the merge throws the same exception; several threads may call it at once.
    static Arbiter value_merger(std::function<ValueAnswer(const ValueQuestion &)> merge, std::string_view rules = {}) {
        using Merge = std::function<ValueAnswer(const ValueQuestion &)>;
        llvs_arbiter *raw = nullptr;
        auto *payload = new Merge(std::move(merge));
        detail::run([&](llvs_error **error) {
            return llvs_value_merger_create(ask, payload, detail::delete_payload<Merge>, detail::bytes(rules), &raw, error);
        });
        return Arbiter(raw);
    }

    /// If the function throws, the merge throws the same exception. Several threads may merge with one arbiter, and then call the function
    /// at once.
    explicit Arbiter(Resolve resolve, const Arbiter *fallback = nullptr) : Arbiter(nullptr) {
        llvs_arbiter *raw = nullptr;
        auto *payload = new Resolve(std::move(resolve));
        detail::run([&](llvs_error **error) {
            return llvs_arbiter_create(call, payload, detail::delete_payload<Resolve>, fallback ? fallback->raw() : nullptr, &raw, error);
        });
        handle_ = decltype(handle_)(raw);
    }

    /// The handle, for calls of the C interface; this object owns it.
    llvs_arbiter *raw() const { return handle_.get(); }

private:
    explicit Arbiter(llvs_arbiter *raw) : handle_(raw) {}

    static llvs_status call(void *payload, const llvs_merge *merge, llvs_resolution *resolution, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status {
            std::optional<std::vector<Change>> changes = (*static_cast<Resolve *>(payload))(Merge(merge));
            if (!changes) return LLVS_PASS;
            std::vector<llvs_change> borrowed = detail::borrow(*changes);
            return llvs_resolution_add(resolution, borrowed.data(), borrowed.size(), sizeof(llvs_change), error);
        });
    }

    static llvs_status ask(void *payload, const llvs_value_question *asked, llvs_resolution *resolution, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status {
            auto optional = [](llvs_bytes bytes) { return bytes.data ? std::optional<std::string>(detail::string(bytes)) : std::nullopt; };
            ValueQuestion question{detail::string(asked->id), detail::string(asked->path), optional(asked->base), optional(asked->newer),
                                   optional(asked->older)};
            ValueAnswer answer = (*static_cast<std::function<ValueAnswer(const ValueQuestion &)> *>(payload))(question);
            if (answer.passes) return LLVS_PASS;
            llvs_change change = LLVS_CHANGE_INIT;
            change.kind = answer.data ? LLVS_CHANGE_UPDATE : LLVS_CHANGE_REMOVE;
            change.id = asked->id;
            if (answer.data) change.data = detail::bytes(*answer.data);
            return llvs_resolution_add(resolution, &change, 1, sizeof change, error);
        });
    }

    detail::Handle<llvs_arbiter, llvs_arbiter_free> handle_;
};

/// How to merge or revert; see llvs_merge_options.
struct MergeOptions {
    llvs_relation relation = LLVS_RELATION_ANY;
    /// If a merge is undone or picked: the predecessor with which it is compared.
    llvs_side parent = LLVS_SIDE_FIRST;
    /// The heads to merge, and the branches for that selection.
    llvs_head_selection selection = LLVS_HEADS_UNBRANCHED;
    std::vector<std::string> branches;
    /// The metadata of the new version; JSON by key.
    std::map<std::string, std::string> metadata;
    /// Progress and cancellation; must live while the call runs.
    const llvs_control *control = nullptr;
};

namespace detail {

/// Options in their borrowed form, for one call.
class BorrowedMergeOptions {
public:
    explicit BorrowedMergeOptions(const MergeOptions &options, std::string_view version = {}) : entries_(options.metadata) {
        raw_.version = bytes(version);
        for (const std::string &branch : options.branches) branches_.push_back(bytes(branch));
        raw_.relation = options.relation;
        raw_.parent = options.parent;
        raw_.selection = options.selection;
        raw_.branches = branches_.data();
        raw_.branch_count = branches_.size();
        raw_.metadata = entries_.entries.data();
        raw_.metadata_count = entries_.entries.size();
        raw_.control = options.control;
    }
    /// The handle, for calls of the C interface; this object owns it.
    const llvs_merge_options *raw() const { return &raw_; }

private:
    Entries entries_;
    std::vector<llvs_bytes> branches_;
    llvs_merge_options raw_ = LLVS_MERGE_OPTIONS_INIT;
};

} // namespace detail

} // namespace llvs

#endif
