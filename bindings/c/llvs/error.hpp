// Handles that release themselves, and errors as exceptions.
// Part of llvs.hpp.
#ifndef LLVS_ERROR_HPP
#define LLVS_ERROR_HPP

#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "llvs.h"

namespace llvs {

/// Views bytes that a struct of llvs.h borrows from the library; valid as long as that struct.
inline std::string_view view(const llvs_bytes &bytes) { return std::string_view(reinterpret_cast<const char *>(bytes.data), bytes.size); }

namespace detail {

inline llvs_bytes bytes(std::string_view text) { return llvs_bytes_make(text.data(), text.size()); }
inline std::string string(llvs_bytes bytes) {
    return bytes.size ? std::string(reinterpret_cast<const char *>(bytes.data), bytes.size) : std::string();
}
inline std::string string(const llvs_version_id &id) { return std::string(id.text, id.size); }

/// The unique owner of a C handle.
template <typename T, void (*Free)(T *)>
class Handle {
public:
    Handle() = default;
    explicit Handle(T *raw) : raw_(raw) {}
    T *get() const { return raw_.get(); }
    T *release() { return raw_.release(); }
    explicit operator bool() const { return raw_ != nullptr; }

private:
    struct Deleter { void operator()(T *raw) const { Free(raw); } };
    std::unique_ptr<T, Deleter> raw_;
};

} // namespace detail

/// An error of the library: a code, a message, and what is concerned. A callback may throw an Error of its own, with a code that its table
/// in llvs.h names; the call then throws it unchanged.
class Error : public std::runtime_error {
public:
    /// An error of the wrapper, with a code of the library.
    Error(llvs_status code, const std::string &message) : std::runtime_error(message), code_(code), user_code_(0) {}
    /// Takes ownership of an error of the library.
    explicit Error(llvs_error *error)
        : std::runtime_error(llvs_error_message(error)), code_(llvs_error_code(error)), user_code_(llvs_error_user_code(error)),
          system_code_(llvs_error_system_code(error)),
          value_id_(detail::string(llvs_error_value_id(error))), version_id_(detail::string(llvs_error_version_id(error))),
          path_(detail::string(llvs_error_path(error))) {
        llvs_error_free(error);
    }
    /// One of LLVS_ERROR_...
    llvs_status code() const noexcept { return code_; }
    /// The number of a callback of the program; see llvs_error_user_code.
    std::int64_t user_code() const noexcept { return user_code_; }
    /// The system's `errno` if a system call failed; else 0.
    std::int32_t system_code() const noexcept { return system_code_; }
    /// The value concerned; empty if there is none.
    const std::string &value_id() const noexcept { return value_id_; }
    /// The version concerned; empty if there is none.
    const std::string &version_id() const noexcept { return version_id_; }
    /// The file or folder concerned; empty if there is none.
    const std::string &path() const noexcept { return path_; }

private:
    llvs_status code_;
    std::int64_t user_code_;
    std::int32_t system_code_;
    std::string value_id_, version_id_, path_;
};

namespace detail {

/// Exceptions of callbacks that pass through the library, by a number that is the user code of the error. Any thread may throw through any
/// handle. Some are never collected, because the library continues without the failed callback: only the newest are kept.
class Thrown {
public:
    static Thrown &all() {
        static Thrown table;
        return table;
    }
    std::int64_t keep(std::exception_ptr thrown) {
        std::lock_guard<std::mutex> lock(mutex_);
        std::int64_t number = static_cast<std::int64_t>(++last_);
        kept_.emplace_back(number, std::move(thrown));
        if (kept_.size() > 256) kept_.pop_front();
        return number;
    }
    /// Returns the exception of this number, once.
    std::exception_ptr take(std::int64_t number) {
        std::lock_guard<std::mutex> lock(mutex_);
        for (auto at = kept_.begin(); at != kept_.end(); ++at)
            if (at->first == number) {
                std::exception_ptr thrown = std::move(at->second);
                kept_.erase(at);
                return thrown;
            }
        return nullptr;
    }

private:
    std::mutex mutex_;
    /// Accepts only numbers of this table, not of copies of the table in other shared objects.
    std::uint64_t last_ = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(this)) << 20;
    std::list<std::pair<std::int64_t, std::exception_ptr>> kept_;
};

/// Throws the error of a call: the exception of the callback that made it fail, else an Error.
inline void check(llvs_status status, llvs_error *error) {
    if (status >= 0) return;
    if (std::exception_ptr thrown = Thrown::all().take(llvs_error_user_code(error))) {
        llvs_error_free(error);
        std::rethrow_exception(thrown);
    }
    throw Error(error);
}

/// Calls `call(&error)` and throws its error.
template <typename Call>
void run(Call call) {
    llvs_error *error = nullptr;
    llvs_status status = call(&error);
    check(status, error);
}

/// Returns the bytes of `call(&buffer, &error)`.
template <typename Call>
std::string taken(Call call) {
    llvs_buffer found;
    run([&](llvs_error **error) { return call(&found, error); });
    Handle<llvs_buffer, llvs_buffer_dispose> owned(&found);
    return std::string(reinterpret_cast<const char *>(found.data), found.size);
}

/// The form in which the library gets an exception: a status, and its number in the error.
inline llvs_status give_up(llvs_error **error, llvs_status status, const char *message) noexcept {
    std::int64_t number = 0;
    try {
        number = Thrown::all().keep(std::current_exception());
    } catch (...) {
        // No memory to keep it: the call fails nevertheless, with an llvs::Error.
    }
    if (error) *error = llvs_error_create(number, llvs_str(message));
    return status;
}

/// The codes that the library keeps if a storage or transport throws an Error with them; see their tables in llvs.h.
inline llvs_status kept_code(llvs_status code) noexcept {
    for (llvs_status kept : {LLVS_ERROR_NO_SPACE, LLVS_ERROR_PERMISSION, LLVS_ERROR_IO, LLVS_ERROR_DAMAGED, LLVS_ERROR_READ_ONLY,
                             LLVS_ERROR_NOT_FOUND, LLVS_ERROR_BUSY, LLVS_ERROR_UNKNOWN_OUTCOME, LLVS_ERROR_TRANSPORT, LLVS_ERROR_CANCELLED})
        if (code == kept) return code;
    return LLVS_ERROR_USER;
}

/// Runs a callback of the host. If it throws, the call that runs the callback throws the same exception.
template <typename Body>
llvs_status guard(llvs_error **error, Body body) noexcept {
    try {
        return body();
    } catch (const Error &thrown) {
        return give_up(error, kept_code(thrown.code()), thrown.what());
    } catch (const std::exception &thrown) {
        return give_up(error, LLVS_ERROR_USER, thrown.what());
    } catch (...) {
        return give_up(error, LLVS_ERROR_USER, "a callback threw an object that is not a std::exception");
    }
}

/// Frees a payload that is a `new T`.
template <typename T>
void delete_payload(void *payload) noexcept { delete static_cast<T *>(payload); }

} // namespace detail

} // namespace llvs

#endif
