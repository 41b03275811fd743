// Keeping a coordinator in sync, in the background. Part of llvs.hpp.
#ifndef LLVS_SYNCER_HPP
#define LLVS_SYNCER_HPP

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control.hpp"
#include "coordinator.hpp"

namespace llvs {

/// The status of one attached exchange; see llvs_sync_place.
struct SyncPlace {
    std::string place;
    llvs_sync_reason reason = LLVS_SYNC_REASON_NONE;
    std::uint64_t failures = 0;
    /// Seconds since 1970; 0: none.
    double retry_at = 0, last_success = 0;
    /// Why the last round failed at this place; LLVS_OK if it did not.
    llvs_status code = LLVS_OK;
    std::string message;
    std::vector<Problem> problems;
    /// The HTTP status of the request that failed; 0: no response, or no failure.
    std::uint32_t http_status = 0;
    /// The number of versions that wait to be sent to this place, if known.
    bool knows_pending = false;
    std::uint64_t pending_versions = 0, pending_bytes = 0;
    /// Seconds since 1970; 0: never.
    double last_retrieve = 0, last_send = 0;
    /// Counts of the last round, and of all rounds since the later of the start of the day (UTC) and the start of the syncer.
    std::uint64_t requests = 0, bytes_up = 0, bytes_down = 0, requests_today = 0, bytes_up_today = 0, bytes_down_today = 0;
    /// For a place in the packed layout: what this device knows about it.
    std::optional<RemoteStatus> remote;
    /// A person has to act before syncing continues there: `reason` says why.
    bool needs_user = false;
    /// How many files that the place lists could not be read in the last round.
    std::uint64_t unread = 0;
    /// Since when there are such files, in seconds since 1970; 0: none.
    double unread_since = 0;
};

/// The status of a syncer; see llvs_sync_status.
struct SyncStatus {
    llvs_sync_state state = LLVS_SYNC_OFF;
    llvs_sync_reason reason = LLVS_SYNC_REASON_NONE;
    /// Progress of the running round; stage 0 if none runs.
    std::uint32_t stage = 0;
    std::uint64_t completed = 0, total = 0;
    /// Seconds since 1970; 0: none.
    double next_round = 0, last_success = 0;
    std::uint64_t rounds = 0, retrieved = 0, sent = 0;
    /// Why the last merge failed; LLVS_OK if it did not.
    llvs_status merge_code = LLVS_OK;
    std::string merge_message;
    std::vector<SyncPlace> places;
    /// While packs are retrieved or sent; 0 if not counted.
    std::uint64_t bytes_done = 0, bytes_total = 0;
    /// The orders to erase that count here, by where they stand; see llvs_sync_status.
    std::uint64_t erasures_followed = 0, erasures_waiting = 0, erasures_announced = 0, erasures_held = 0;

    SyncStatus() = default;
    explicit SyncStatus(const llvs_sync_status &raw)
        : state(raw.state), reason(raw.reason), stage(raw.stage), completed(raw.completed), total(raw.total), next_round(raw.next_round),
          last_success(raw.last_success), rounds(raw.rounds), retrieved(raw.retrieved), sent(raw.sent),
          merge_code(llvs_error_code(raw.merge_error)), merge_message(llvs_error_message(raw.merge_error)), bytes_done(raw.bytes_done),
          bytes_total(raw.bytes_total), erasures_followed(raw.erasures_followed), erasures_waiting(raw.erasures_waiting),
          erasures_announced(raw.erasures_announced), erasures_held(raw.erasures_held) {
        for (std::size_t i = 0; i < raw.place_count; i++) {
            const llvs_sync_place &one = *raw.places[i];
            places.push_back({detail::string(one.place), one.reason, one.failures, one.retry_at, one.last_success,
                              llvs_error_code(one.error), llvs_error_message(one.error),
                              detail::problems(one.problems, one.problem_count), one.http_status, one.knows_pending != 0,
                              one.pending_versions, one.pending_bytes, one.last_retrieve, one.last_send, one.requests, one.bytes_up,
                              one.bytes_down, one.requests_today, one.bytes_up_today, one.bytes_down_today,
                              one.remote ? std::optional<RemoteStatus>(RemoteStatus(*one.remote)) : std::nullopt, one.needs_user != 0,
                              one.unread, one.unread_since});
        }
    }
};

/// Keeps a coordinator in sync with its exchanges automatically, until it is destroyed: see llvs_syncer_start.
///
///     llvs::Syncer syncer(notes, [](const llvs_sync_status &status, const llvs_sync_result *round) { ... });
class Syncer {
public:
    /// Receives the status, on the syncer's thread; `round` is null except at the end of a round. Both are valid during the call only.
    using Hear = std::function<void(const llvs_sync_status &, const llvs_sync_result *)>;

    static llvs_syncer_options options() { return LLVS_SYNCER_OPTIONS_INIT; }

    explicit Syncer(const Coordinator &coordinator, Hear hear = {}, const llvs_syncer_options &options = Syncer::options())
        : state_(std::make_shared<Observer::State>()) {
        using Registered = Observer::Registered<Hear>;
        auto *payload = new Registered{std::move(hear), state_};
        llvs_syncer *raw = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_syncer_start(coordinator.raw(), &options, event, payload, detail::delete_payload<Registered>, &raw, error);
        });
        handle_ = decltype(handle_)(raw);
    }

    /// Reports an event after which a round may be due. Does not wait for the round.
    void trigger(llvs_sync_trigger trigger) {
        detail::run([&](llvs_error **error) { return llvs_syncer_trigger(raw(), trigger, error); });
    }
    /// Sets the conditions: LLVS_SYNC_OFFLINE and the like, joined by |.
    void set_conditions(llvs_sync_conditions conditions) {
        detail::run([&](llvs_error **error) { return llvs_syncer_set_conditions(raw(), conditions, error); });
    }
    /// Runs a round at the user's request, and waits for its end, at most `deadline` ms (0: no deadline); returns whether all was done.
    bool run(std::uint64_t deadline = 0, const llvs_control *control = nullptr) {
        llvs_bool done = 0;
        detail::run([&](llvs_error **error) { return llvs_syncer_run(raw(), deadline, control, &done, error); });
        return done != 0;
    }
    SyncStatus status() const {
        llvs_sync_status *raw_status = nullptr;
        detail::run([&](llvs_error **error) { return llvs_syncer_status(raw(), &raw_status, error); });
        detail::Handle<llvs_sync_status, llvs_sync_status_free> handle(raw_status);
        return SyncStatus(*raw_status);
    }
    /// Ends the syncer, and waits for a running callback, except from within it. Throws the exception of a callback.
    void close() {
        handle_ = decltype(handle_)();
        check();
    }
    /// Throws the exception of a callback, once.
    void check() const {
        if (std::exception_ptr thrown = state_ ? state_->take() : nullptr) std::rethrow_exception(thrown);
    }
    /// The handle, for calls of llvs.h that have no method here; valid as long as this object.
    llvs_syncer *raw() const { return handle_.get(); }

private:
    static void event(void *payload, const llvs_sync_status *status, const llvs_sync_result *round) {
        auto *registered = static_cast<Observer::Registered<Hear> *>(payload);
        if (registered->callback) registered->state->guard([&] { registered->callback(*status, round); });
    }

    std::shared_ptr<Observer::State> state_;
    detail::Handle<llvs_syncer, llvs_syncer_free> handle_;
};

} // namespace llvs

#endif
