// Handles that release themselves, and errors as exceptions.
// Part of llvs.hpp.
#ifndef LLVS_ERROR_HPP
#define LLVS_ERROR_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
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

/// Runs callbacks of the host. What one throws is kept under a number, which travels through the library as the error's user code, and
/// is thrown from the call that it made fail: also where several threads call at once.
class Kept {
public:
    template <typename Body>
    llvs_status guard(llvs_error **error, Body body) {
        try {
            return body();
        } catch (const std::exception &thrown) {
            keep(error, thrown.what());
        } catch (...) {
            keep(error, "a callback threw something that is no std::exception");
        }
        return LLVS_ERROR_USER;
    }
    template <typename Call>
    void run(Call call) {
        llvs_error *error = nullptr;
        llvs_status status = call(&error);
        if (status == LLVS_ERROR_USER) {
            if (std::exception_ptr thrown = take(llvs_error_user_code(error))) {
                llvs_error_free(error);
                std::rethrow_exception(thrown);
            }
        }
        check(status, error);
    }

private:
    // Some never arrive (the library may go on without a cache, say): only the newest are kept.
    static constexpr std::size_t most = 256;

    // Nothing is thrown into the library: short of memory there is an error without an exception.
    void keep(llvs_error **error, const char *message) noexcept {
        static std::atomic<std::int64_t> last{INT64_C(1) << 62};
        const std::int64_t number = ++last;
        try {
            const std::lock_guard<std::mutex> lock(mutex_);
            if (thrown_.size() >= most) thrown_.erase(thrown_.begin());
            thrown_.emplace(number, std::current_exception());
        } catch (...) {
        }
        llvs_error_free(*error);
        *error = llvs_error_make(number, llvs_str(message));
    }
    std::exception_ptr take(std::int64_t number) {
        const std::lock_guard<std::mutex> lock(mutex_);
        const auto found = thrown_.find(number);
        if (found == thrown_.end()) return nullptr;
        std::exception_ptr thrown = found->second;
        thrown_.erase(found);
        return thrown;
    }

    std::mutex mutex_;
    std::map<std::int64_t, std::exception_ptr> thrown_;
};

} // namespace detail

} // namespace llvs

#endif
