// SQLite databases that mirror a version. Part of llvs.hpp.
#ifndef LLVS_PROJECTION_HPP
#define LLVS_PROJECTION_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "coordinator.hpp"
#include "store.hpp"

namespace llvs {

/// A SQLite database that mirrors one version of a store in tables; see llvs_projection. Safe from all threads.
class Projection {
public:
    /// Opens a projection that only `update` updates.
    Projection(const Store &store, std::string_view path, std::string_view definition,
               llvs_projection_options options = LLVS_PROJECTION_OPTIONS_INIT) {
        open(store.raw(), path, definition, options);
    }
    /// Opens a projection that follows the current version of a coordinator.
    Projection(const Coordinator &coordinator, std::string_view path, std::string_view definition,
               llvs_projection_options options = LLVS_PROJECTION_OPTIONS_INIT) {
        options.coordinator = coordinator.raw();
        const Store store = coordinator.store();
        open(store.raw(), path, definition, options);
    }

    /// Moves the database to a version; an empty one: the current. Returns how many rows changed.
    std::uint64_t update(std::string_view to = {}, const llvs_control *control = nullptr) const {
        std::uint64_t changed = 0;
        detail::run([&](llvs_error **error) { return llvs_projection_update(raw(), detail::bytes(to), control, &changed, error); });
        return changed;
    }
    /// Returns its version, and why the last automatic update failed, as JSON; see llvs_projection_status.
    std::string status() const {
        return detail::taken([&](llvs_buffer *out, llvs_error **error) { return llvs_projection_status(raw(), out, error); });
    }
    /// Returns the values that did not fit their columns, as JSON; see llvs_projection_problems.
    std::string problems(std::uint64_t after = 0) const {
        return detail::taken([&](llvs_buffer *out, llvs_error **error) { return llvs_projection_problems(raw(), after, out, error); });
    }
    /// For calls of the C interface.
    llvs_projection *raw() const noexcept { return handle_.get(); }

private:
    void open(llvs_store *store, std::string_view path, std::string_view definition, const llvs_projection_options &options) {
        llvs_projection *made = nullptr;
        detail::run([&](llvs_error **error) {
            return llvs_projection_open(store, detail::bytes(path), detail::bytes(definition), &options, &made, error);
        });
        handle_ = decltype(handle_)(made);
    }
    detail::Handle<llvs_projection, llvs_projection_free> handle_;
};

} // namespace llvs
#endif
