// Handles that release themselves, and errors as exceptions.
// Part of llvs.hpp.
#ifndef LLVS_ERROR_HPP
#define LLVS_ERROR_HPP

#include <cstdint>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

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
          system_code_(llvs_error_system_code(error)),
          value_id_(detail::string(llvs_error_value_id(error))), version_id_(detail::string(llvs_error_version_id(error))),
          path_(detail::string(llvs_error_path(error))) {
        llvs_error_free(error);
    }
    /// One of LLVS_ERROR_...
    llvs_status code() const noexcept { return code_; }
    std::int64_t user_code() const noexcept { return user_code_; }
    /// The system's `errno`, where a call of the system failed; else 0.
    std::int32_t system_code() const noexcept { return system_code_; }
    const std::string &value_id() const noexcept { return value_id_; }
    const std::string &version_id() const noexcept { return version_id_; }
    const std::string &path() const noexcept { return path_; }

private:
    llvs_status code_;
    std::int64_t user_code_;
    std::int32_t system_code_;
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

} // namespace llvs

#endif
