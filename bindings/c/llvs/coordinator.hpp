// A store, its current version, exchanges and an arbiter.
// Part of llvs.hpp.
#ifndef LLVS_COORDINATOR_HPP
#define LLVS_COORDINATOR_HPP

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exchange.hpp"

namespace llvs {

/// A store, its current version, exchanges and an arbiter.
class Coordinator {
public:
    static llvs_coordinator_options options() { return LLVS_COORDINATOR_OPTIONS_INIT; }

    explicit Coordinator(std::string_view path, const llvs_coordinator_options &options = Coordinator::options()) {
        llvs_coordinator *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_coordinator_open(detail::bytes(path), &options, &raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    /// Opens a coordinator, with a first exchange.
    Coordinator(std::string_view path, std::string_view exchange_url) : Coordinator(path) { attach(exchange_url); }

    /// Attaches an exchange; see llvs_coordinator_attach.
    void attach(std::string_view place, const llvs_exchange_options &options = Exchange::options()) {
        detail::run([&](llvs_error **error) { return llvs_coordinator_attach(raw(), detail::bytes(place), &options, error); });
    }

    VersionID current_version() const {
        llvs_version_id id;
        detail::run([&](llvs_error **error) { return llvs_coordinator_current_version(raw(), &id, error); });
        return detail::string(id);
    }
    /// Returns the version where it was when it was last used, if the store does not have that version; else empty.
    VersionID missing_version() const {
        llvs_version_id id;
        detail::run([&](llvs_error **error) { return llvs_coordinator_missing_version(raw(), &id, error); });
        return detail::string(id);
    }
    /// Saves, and returns the new version; empty if there was nothing to save. `move` receives how the current version moved.
    VersionID save(const std::vector<Change> &changes, const VersionOptions &more = {}, Move *move = nullptr) {
        std::vector<llvs_change> borrowed = detail::borrow(changes);
        detail::BorrowedOptions options(more);
        llvs_version_id id;
        Moving moving(move);
        detail::run([&](llvs_error **error) {
            return llvs_coordinator_save(
                raw(), borrowed.data(), borrowed.size(), sizeof(llvs_change), options.raw(), &id, nullptr, &moving.raw, error);
        });
        return detail::string(id);
    }
    /// Returns the value at the current version; for everything else, read from the store.
    std::optional<Value> value(std::string_view id) const {
        llvs_buffer buffer;
        llvs_version_id stored;
        detail::run([&](llvs_error **error) { return llvs_coordinator_value(raw(), detail::bytes(id), &buffer, &stored, error); });
        if (!buffer.data) return std::nullopt;
        Value value{std::string(id), std::string(reinterpret_cast<const char *>(buffer.data), buffer.size), detail::string(stored)};
        llvs_buffer_dispose(&buffer);
        return value;
    }
    /// Adds rules for merging to the rules of the store; see llvs_coordinator_register_schema.
    Schema register_schema(std::string_view rules, Move *move = nullptr) {
        llvs_schema *made = nullptr;
        Moving moving(move);
        detail::run([&](llvs_error **error) {
            return llvs_coordinator_register_schema(raw(), detail::bytes(rules), &moving.raw, &made, error);
        });
        return detail::take(made);
    }
    /// Reverts the last save of this device; returns nothing if there is none. See llvs_coordinator_undo.
    std::optional<Reverted> undo(bool only_tell = false, const MergeOptions &more = {}, Move *move = nullptr) {
        return undo(llvs_coordinator_undo, only_tell, more, move);
    }
    /// Reverts a version, by whatever device.
    Reverted revert(std::string_view version, const MergeOptions &more = {}, Move *move = nullptr) {
        return *undo(llvs_coordinator_undo, false, more, move, version);
    }
    /// Reverts the last undo of this device; returns nothing if there is none. See llvs_coordinator_redo.
    std::optional<Reverted> redo(bool only_tell = false, const MergeOptions &more = {}, Move *move = nullptr) {
        return undo(llvs_coordinator_redo, only_tell, more, move);
    }
    /// Exchanges with each attached exchange. If one fails, the others run nevertheless; then the first failure is thrown, and `done` has
    /// the results, also of each exchange.
    ExchangeResult exchange(const llvs_control *control = nullptr, ExchangeResult *done = nullptr) {
        llvs_exchange_result *raw_result = nullptr;
        ExchangeResult result;
        detail::run([&](llvs_error **error) {
            llvs_status status = llvs_coordinator_exchange(raw(), control, &raw_result, error);
            // The result is given even with an error.
            if (raw_result) result = ExchangeResult(raw_result);
            if (done) *done = result;
            return status;
        });
        return result;
    }
    /// Merges, and returns whether the current version moved; `move` receives how.
    bool merge(const MergeOptions &more = {}, Move *move = nullptr) {
        detail::BorrowedMergeOptions options(more);
        Moving moving(move);
        detail::run([&](llvs_error **error) { return llvs_coordinator_merge(raw(), options.raw(), &moving.raw, error); });
        return moving.raw.moved != 0;
    }
    /// Syncs: exchanges, merges heads, and exchanges again if the merge changed something. Returns whether the current version
    /// moved. `problems` receives the items that could not be exchanged, before or after the merge, also if it throws.
    bool sync(const MergeOptions &more = {}, std::vector<Problem> *problems = nullptr) {
        detail::BorrowedMergeOptions options(more);
        llvs_sync_result *raw_result = nullptr;
        llvs_bool moved = 0;
        if (problems) problems->clear();
        detail::run([&](llvs_error **error) {
            llvs_status status = llvs_coordinator_sync(raw(), options.raw(), &raw_result, error);
            detail::Handle<llvs_sync_result, llvs_sync_result_free> result(raw_result);
            if (raw_result) moved = raw_result->moved;
            for (const llvs_exchange_result *done : {raw_result ? raw_result->before : nullptr, raw_result ? raw_result->after : nullptr}) {
                if (!problems || !done) continue;
                std::vector<Problem> found = detail::problems(done->problems, done->problem_count);
                problems->insert(problems->end(), found.begin(), found.end());
            }
            return status;
        });
        return moved != 0;
    }
    /// Attaches a transport of the host; its state is stored under the name, which must be the same in every process.
    void attach(std::string_view name, const HostTransport &transport) {
        llvs_exchange_options options = Exchange::options();
        options.host_transport = transport.raw();
        attach(name, options);
    }
    /// Registers a callback for moves of the current version, on the thread whose call moved it.
    Observer observe(std::function<void(const VersionID &)> callback) {
        return Observer::make(std::move(callback),
                              [&](void *payload, llvs_free_fn payload_free, llvs_observer **observer, llvs_error **error) {
                                  return llvs_coordinator_observe(raw(), moved, payload, payload_free, observer, error);
                              });
    }
    /// Registers a callback for new versions at the places of the exchanges that are attached now, on a thread of the library.
    Observer observe_exchanges(std::function<void()> callback) {
        return Observer::make(std::move(callback),
                              [&](void *payload, llvs_free_fn payload_free, llvs_observer **observer, llvs_error **error) {
                                  return llvs_coordinator_observe_exchanges(raw(), detail::notify, payload, payload_free, observer, error);
                              });
    }
    /// Restores the first usable snapshot of the exchanges into a store that is empty or holds one version; false if there is none. `move`
    /// receives how the current version moved.
    bool bootstrap(const llvs_control *control = nullptr, Move *move = nullptr) {
        llvs_bool restored = 0;
        Moving moving(move);
        detail::run([&](llvs_error **error) { return llvs_coordinator_bootstrap(raw(), control, &restored, &moving.raw, error); });
        return restored != 0;
    }
    Store store() const {
        llvs_store *raw_store = nullptr;
        detail::run([&](llvs_error **error) { return llvs_coordinator_store(raw(), &raw_store, error); });
        return Store(raw_store);
    }
    void close() { detail::run([&](llvs_error **error) { return llvs_coordinator_close(raw(), error); }); }
    /// The handle, for calls of the C interface; this object owns it.
    llvs_coordinator *raw() const { return handle_.get(); }

private:
    template <typename Function>
    std::optional<Reverted> undo(
        Function function, bool only_tell, const MergeOptions &more, Move *move, std::string_view version = {}) {
        detail::BorrowedMergeOptions options(more, version);
        Moving moving(move);
        llvs_revert_result *made = nullptr;
        detail::run([&](llvs_error **error) { return function(raw(), only_tell, options.raw(), &moving.raw, &made, error); });
        if (!made) return std::nullopt;
        return detail::take(made);
    }
    /// Receives the move of a call, and passes it on when the call is over, also after an exception.
    struct Moving {
        explicit Moving(Move *told) : told_(told) {}
        Moving(const Moving &) = delete;
        Moving &operator=(const Moving &) = delete;
        ~Moving() {
            if (told_) *told_ = {raw.moved != 0, detail::string(raw.from), detail::string(raw.to)};
        }
        llvs_move raw = LLVS_MOVE_INIT;

    private:
        Move *told_;
    };

    static void moved(void *payload, const llvs_version_id *version) {
        auto *registered = static_cast<Observer::Registered<std::function<void(const VersionID &)>> *>(payload);
        registered->state->guard([&] { registered->callback(detail::string(*version)); });
    }
    detail::Handle<llvs_coordinator, llvs_coordinator_free> handle_;
};

} // namespace llvs

#endif
