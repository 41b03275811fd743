// What decides the conflicts of merges.
// Part of llvs.hpp.
#ifndef LLVS_MERGE_HPP
#define LLVS_MERGE_HPP

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model.hpp"

namespace llvs {

/// What an arbiter sees; lives for its call only.
class Merge {
public:
    explicit Merge(const llvs_merge *raw) : raw_(raw) {}
    Version first() const { return Version(*raw_->first); }
    Version second() const { return Version(*raw_->second); }
    Version ours() const { return Version(*raw_->ours); }
    Version theirs() const { return Version(*raw_->theirs); }
    std::size_t size() const { return raw_->fork_count; }
    const llvs_fork &fork(std::size_t index) const {
        if (index >= raw_->fork_count) throw std::out_of_range("a merge has no fork of this index");
        return *raw_->forks[index];
    }
    /// The bytes on a side of a fork; nothing when it is absent there.
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

} // namespace llvs

#endif
