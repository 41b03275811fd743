// Moving versions between stores.
// Part of llvs.hpp.
#ifndef LLVS_EXCHANGE_HPP
#define LLVS_EXCHANGE_HPP

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store.hpp"

namespace llvs {

struct ExchangeResult {
    struct Problem { llvs_status code; std::string name, message; };
    std::vector<VersionID> retrieved, sent, repaired;
    std::vector<Problem> problems;

    /// Takes over a result.
    explicit ExchangeResult(llvs_exchange_result *raw) {
        detail::Handle<llvs_exchange_result, llvs_exchange_result_free> handle(raw);
        std::size_t count = 0;
        const llvs_bytes *ids = llvs_exchange_result_retrieved(raw, &count);
        for (std::size_t i = 0; i < count; i++) retrieved.push_back(detail::string(ids[i]));
        ids = llvs_exchange_result_sent(raw, &count);
        for (std::size_t i = 0; i < count; i++) sent.push_back(detail::string(ids[i]));
        ids = llvs_exchange_result_repaired(raw, &count);
        for (std::size_t i = 0; i < count; i++) repaired.push_back(detail::string(ids[i]));
        for (std::size_t i = 0; i < llvs_exchange_result_problem_count(raw); i++) {
            const llvs_problem *problem = llvs_exchange_result_problem_at(raw, i);
            problems.push_back({problem->code, detail::string(problem->name), detail::string(problem->message)});
        }
    }
};

/// Moves versions between a store and a place that others reach.
class Exchange {
public:
    static llvs_exchange_options options() { return LLVS_EXCHANGE_OPTIONS_INIT; }

    Exchange(const Store &store, std::string_view url, const llvs_exchange_options &options = Exchange::options()) {
        llvs_exchange *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_open(store.raw(), detail::bytes(url), &options, &raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    /// Through a transport of the host.
    Exchange(const Store &store, const HostTransport &transport, const llvs_exchange_options &options = Exchange::options()) {
        llvs_exchange *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_open_transport(store.raw(), transport.raw(), &options, &raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    /// Calls soon after the other side may have gained versions, on a thread of the library. Throws Error (UNSUPPORTED) when it cannot tell.
    Observer observe(std::function<void()> callback) {
        return Observer::make(std::move(callback), [&](void *payload, llvs_free_fn payload_free, llvs_observer **observer, llvs_error **error) {
            return llvs_exchange_observe(raw(), detail::notify, payload, payload_free, observer, error);
        });
    }
    ExchangeResult retrieve(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_retrieve(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    /// Retrieves, and looks as well at the files of what the store has: those that are damaged are problems, and the next `send` writes them anew;
    /// versions that are damaged in the store are repaired.
    ExchangeResult verify(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_verify(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    ExchangeResult send(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_exchange_send(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    void close() { detail::run([&](llvs_error **error) { return llvs_exchange_close(raw(), error); }); }
    llvs_exchange *raw() const { return handle_.get(); }

private:
    detail::Handle<llvs_exchange, llvs_exchange_free> handle_;
};

} // namespace llvs

#endif
