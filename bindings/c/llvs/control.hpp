// Progress, cancellation, and registrations of unsolicited callbacks. Part of llvs.hpp.
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
    /// Sets the token permanently: every call that uses it throws an Error (CANCELLED) at its next check.
    void cancel() noexcept { llvs_cancel_token_cancel(raw()); }
    bool cancelled() const noexcept { return llvs_cancel_token_is_cancelled(raw()) != 0; }
    /// The handle, for calls of the C interface; this object owns it.
    llvs_cancel_token *raw() const { return handle_.get(); }

private:
    detail::Handle<llvs_cancel_token, llvs_cancel_token_free> handle_;
};

/// Progress and cancellation of one call at a time: pass it where a `const llvs_control *` is expected.
///
///     llvs::CancelToken token;
///     exchange.retrieve(llvs::Control(token, [](const llvs_progress &progress) { return progress.completed < 100; }));
class Control {
public:
    /// Receives the progress of a call, on the call's thread. If it returns false, the call is cancelled; if it throws, so does the call.
    using Hear = std::function<bool(const llvs_progress &)>;

    /// Calls `hear` with the progress of the work, and continues while it returns true.
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

    /// For calls of the C interface and of the wrapper.
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

/// A registration of an unsolicited callback. It ends when this object is closed or destroyed. That waits for a running callback (except
/// from within it); afterwards no callback runs.
///
/// If such a callback throws, there is no call that could throw the exception. The first one is kept, and thrown by `close` or `check`.
class Observer {
public:
    Observer(Observer &&) = default;
    Observer &operator=(Observer &&) = default;

    /// Throws the exception of a callback, once.
    void check() const {
        if (std::exception_ptr thrown = state_ ? state_->take() : nullptr) std::rethrow_exception(thrown);
    }
    /// Ends the registration without waiting: see llvs_observer_cancel. Under any lock.
    void cancel() const noexcept { llvs_observer_cancel(handle_.get()); }
    /// Ends the registration, and waits for its running callbacks, except from within an unsolicited callback. Do not call it under a lock
    /// that the callback takes. Throws the exception of a callback.
    void close() {
        handle_ = decltype(handle_)();
        check();
    }
    /// The handle, for calls of the C interface; this object owns it.
    llvs_observer *raw() const { return handle_.get(); }

    /// The exceptions of a callback that are kept.
    class State {
    public:
        /// Runs the body of a callback, and keeps its first exception.
        template <typename Body>
        void guard(Body body) noexcept {
            try {
                body();
            } catch (...) {
                std::lock_guard<std::mutex> lock(mutex_);
                if (!first_) first_ = std::current_exception();
            }
        }
        /// Throws the kept exception, once.
        std::exception_ptr take() {
            std::lock_guard<std::mutex> lock(mutex_);
            return std::exchange(first_, nullptr);
        }

    private:
        std::mutex mutex_;
        std::exception_ptr first_;
    };

    /// The payload of a callback.
    template <typename Callback>
    struct Registered {
        Callback callback;
        std::shared_ptr<State> state;
    };
    /// Registers a callback with `call(payload, payload_free, &observer, &error)`. The registered function casts the payload back to a
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

/// Registers a callback for messages of the library up to a level, on any thread, also on several at once; the text is valid during the
/// call only.
inline Observer observe_log(std::function<void(llvs_log_level, std::string_view)> callback, llvs_log_level level = LLVS_LOG_WARNING) {
    return Observer::make(std::move(callback), [&](void *payload, llvs_free_fn payload_free, llvs_observer **observer, llvs_error **error) {
        return llvs_log_observe(level, detail::log, payload, payload_free, observer, error);
    });
}

} // namespace llvs

#endif
