// A store, a current version, exchanges and an arbiter.
// Part of llvs.hpp.
#ifndef LLVS_COORDINATOR_HPP
#define LLVS_COORDINATOR_HPP

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "exchange.hpp"

namespace llvs {

/// A store, a current version, exchanges and an arbiter.
class Coordinator {
public:
    static llvs_coordinator_options options() { return LLVS_COORDINATOR_OPTIONS_INIT; }

    explicit Coordinator(std::string_view path, const llvs_coordinator_options &options = Coordinator::options()) {
        llvs_coordinator *raw = nullptr;
        detail::run([&](llvs_error **error) { return llvs_coordinator_open(detail::bytes(path), &options, &raw, error); });
        handle_ = decltype(handle_)(raw);
    }
    Coordinator(std::string_view path, std::string_view exchange_url) : Coordinator(path, with_url(exchange_url)) {}

    VersionID current_version() const {
        llvs_version_id id;
        detail::run([&](llvs_error **error) { return llvs_coordinator_current_version(raw(), &id, error); });
        return detail::string(id);
    }
    /// Where it was when it was last used, when the store had not got that version; else empty.
    VersionID missing_version() const {
        llvs_version_id id;
        detail::run([&](llvs_error **error) { return llvs_coordinator_missing_version(raw(), &id, error); });
        return detail::string(id);
    }
    /// The new version; empty when there was nothing to save.
    VersionID save(const std::vector<Change> &changes, const VersionOptions &more = {}) {
        std::vector<llvs_change> borrowed = detail::borrow(changes);
        detail::BorrowedOptions options(more);
        llvs_version_id id;
        options.run([&](llvs_error **error) {
            return llvs_coordinator_save(raw(), borrowed.data(), borrowed.size(), sizeof(llvs_change), options.raw(), &id, nullptr, error);
        });
        return detail::string(id);
    }
    /// The value, to be read in parts; nothing when there is none.
    std::optional<ValueReader> open_value(std::string_view id, std::string_view at = {}) const {
        llvs_value_reader *reader = nullptr;
        std::uint64_t size = 0;
        llvs_version_id stored;
        detail::run([&](llvs_error **error) { return llvs_coordinator_open_value(raw(), detail::bytes(id), detail::bytes(at), &reader, &size, &stored, error); });
        return detail::reader(reader, size, stored);
    }
    std::optional<Value> value(std::string_view id, std::string_view at = {}) const {
        llvs_buffer buffer;
        llvs_version_id stored;
        detail::run([&](llvs_error **error) { return llvs_coordinator_value(raw(), detail::bytes(id), detail::bytes(at), &buffer, &stored, error); });
        if (!buffer.data) return std::nullopt;
        Value value{std::string(id), std::string(reinterpret_cast<const char *>(buffer.data), buffer.size), detail::string(stored)};
        llvs_buffer_dispose(&buffer);
        return value;
    }
    ExchangeResult exchange(const llvs_control *control = nullptr) {
        llvs_exchange_result *result = nullptr;
        detail::run([&](llvs_error **error) { return llvs_coordinator_exchange(raw(), control, &result, error); });
        return ExchangeResult(result);
    }
    /// Whether the current version moved.
    bool merge() {
        llvs_bool changed = 0;
        detail::run([&](llvs_error **error) { return llvs_coordinator_merge(raw(), nullptr, &changed, error); });
        return changed != 0;
    }
    Store store() const {
        llvs_store *raw_store = nullptr;
        detail::run([&](llvs_error **error) { return llvs_coordinator_store(raw(), &raw_store, error); });
        return Store(raw_store);
    }
    void close() { detail::run([&](llvs_error **error) { return llvs_coordinator_close(raw(), error); }); }
    llvs_coordinator *raw() const { return handle_.get(); }

private:
    static llvs_coordinator_options with_url(std::string_view url) {
        llvs_coordinator_options made = options();
        made.exchange_url = detail::bytes(url);
        return made;
    }
    detail::Handle<llvs_coordinator, llvs_coordinator_free> handle_;
};

} // namespace llvs

#endif
