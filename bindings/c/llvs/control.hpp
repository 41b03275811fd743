// Progress, cancellation, and registrations of callbacks that come by themselves.
// Part of llvs.hpp.
#ifndef LLVS_CONTROL_HPP
#define LLVS_CONTROL_HPP

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "error.hpp"

namespace llvs {

/// Stops long work from any thread.
class CancelToken {
public:
    CancelToken() {
        llvs_cancel_token *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_cancel_token_create(&raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    /// Makes every call that was given the token throw an Error (CANCELLED) at its next check, for good.
    void cancel() noexcept { llvs_cancel_token_cancel(raw()); }
    bool cancelled() const noexcept { return llvs_cancel_token_is_cancelled(raw()) != 0; }
    /// The handle, for calls of the C interface; it stays this object's.
    llvs_cancel_token *raw() const { return handle_.get(); }

private:
    detail::Handle<llvs_cancel_token, llvs_cancel_token_free> handle_;
};

/// Progress and cancellation of one call at a time: given to whatever takes a `const llvs_control *`.
///
///     llvs::CancelToken token;
///     exchange.retrieve(llvs::Control(token, [](const llvs_progress &progress) { return progress.completed < 100; }));
class Control {
public:
    /// Hears how far the call has come, on its thread; false cancels it, and what it throws comes out of the call.
    using Hear = std::function<bool(const llvs_progress &)>;

    /// Calls `hear` as the work goes on, which goes on while that returns true.
    explicit Control(Hear hear) : hear_(std::move(hear)) {
        raw_.payload = this;
        raw_.progress = call;
    }
    /// The token must live while the call runs.
    explicit Control(const CancelToken &token) { raw_.token = token.raw(); }
    /// Does both.
    Control(const CancelToken &token, Hear hear) : Control(std::move(hear)) { raw_.token = token.raw(); }
    Control(const Control &) = delete;
    Control &operator=(const Control &) = delete;

    /// For calls of the C interface and of the wrapper, which take it as it is.
    operator const llvs_control *() const noexcept { return &raw_; }

private:
    static llvs_status call(void *payload, const llvs_progress *progress, llvs_error **error) {
        return detail::guard(error, [&]() -> llvs_status {
            return static_cast<Control *>(payload)->hear_(*progress) ? LLVS_OK : LLVS_ERROR_CANCELLED;
        });
    }

    Hear hear_;
    llvs_control raw_ = LLVS_CONTROL_INIT;
};

/// A registration of a callback that comes by itself. It ends when this is closed or destroyed, which waits for a running callback
/// (except from within it); none comes after.
///
/// Such a callback has no call that it could throw from. The first exception that it throws is kept, and thrown by `close` or `check`.
class Observer {
public:
    Observer(Observer &&) = default;
    Observer &operator=(Observer &&) = default;

    /// Throws what a callback threw, once.
    void check() const {
        if (std::exception_ptr thrown = state_ ? state_->take() : nullptr) std::rethrow_exception(thrown);
    }
    /// Ends the registration without waiting: see llvs_observer_cancel. Under any lock.
    void cancel() const noexcept { llvs_observer_cancel(handle_.get()); }
    /// Ends the registration, and waits for its running callbacks, except from within a callback of any: not under a lock that it takes.
    /// Throws what a callback threw.
    void close() {
        handle_ = decltype(handle_)();
        check();
    }
    /// The handle, for calls of the C interface; it stays this object's.
    llvs_observer *raw() const { return handle_.get(); }

    /// What is kept of a callback's exceptions.
    class State {
    public:
        /// Runs the body of a callback, and keeps the first exception that it throws.
        template <typename Body>
        void guard(Body body) noexcept {
            try {
                body();
            } catch (...) {
                std::lock_guard<std::mutex> lock(mutex_);
                if (!first_) first_ = std::current_exception();
            }
        }
        /// The exception that was kept, once.
        std::exception_ptr take() {
            std::lock_guard<std::mutex> lock(mutex_);
            return std::exchange(first_, nullptr);
        }

    private:
        std::mutex mutex_;
        std::exception_ptr first_;
    };

    /// What a callback gets as its payload.
    template <typename Callback>
    struct Registered {
        Callback callback;
        std::shared_ptr<State> state;
    };
    /// Registers a callback: `call(payload, payload_free, &observer, &error)` does, and what it registers casts the payload back to a
    /// `Registered<Callback>`.
    template <typename Callback, typename Call>
    static Observer make(Callback callback, Call call) {
        Observer observer;
        observer.state_ = std::make_shared<State>();
        auto *payload = new Registered<Callback>{std::move(callback), observer.state_};
        llvs_observer *raw = nullptr;
        detail::run([&](llvs_error **error) { return call(payload, detail::delete_payload<Registered<Callback>>, &raw, error); });
        observer.handle_ = decltype(observer.handle_)(raw);
        return observer;
    }

private:
    Observer() = default;

    std::shared_ptr<State> state_;
    detail::Handle<llvs_observer, llvs_observer_free> handle_;
};

namespace detail {

/// An llvs_notify_fn for a `std::function<void()>`.
inline void notify(void *payload) {
    auto *registered = static_cast<Observer::Registered<std::function<void()>> *>(payload);
    registered->state->guard([&] { registered->callback(); });
}

inline void log(void *payload, llvs_log_level level, const llvs_bytes *message) {
    auto *registered = static_cast<Observer::Registered<std::function<void(llvs_log_level, std::string_view)>> *>(payload);
    registered->state->guard([&] { registered->callback(level, view(*message)); });
}

} // namespace detail

/// Calls for each message of the library up to a level, from any thread, also from several at once; the text lives for the call only.
inline Observer observe_log(std::function<void(llvs_log_level, std::string_view)> callback, llvs_log_level level = LLVS_LOG_WARNING) {
    return Observer::make(std::move(callback), [&](void *payload, llvs_free_fn payload_free, llvs_observer **observer, llvs_error **error) {
        return llvs_log_observe(level, detail::log, payload, payload_free, observer, error);
    });
}

} // namespace llvs

#endif
