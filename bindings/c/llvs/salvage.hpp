// Salvages a damaged store. Part of llvs.hpp.
#ifndef LLVS_SALVAGE_HPP
#define LLVS_SALVAGE_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store.hpp"

namespace llvs {

/// A version that a salvage made; see llvs_salvaged.
struct Salvaged {
    VersionID original, version;
    bool is_complete;
};

/// The report of a salvage: what was written, and what is lost.
struct SalvageReport {
    std::uint64_t versions = 0, waiting = 0;
    std::vector<Salvaged> made;
    std::vector<Damage> damages;
};

/// Writes everything that is whole in the damaged store at `path` into a new one at `target`; see llvs_store_salvage.
inline SalvageReport salvage(std::string_view path, std::string_view target, const llvs_store_options &options = Store::options(),
                             const llvs_store_options &target_options = Store::options(), const llvs_control *control = nullptr) {
    llvs_salvage_report *raw = nullptr;
    detail::run([&](llvs_error **error) {
        return llvs_store_salvage(detail::bytes(path), &options, detail::bytes(target), &target_options, control, &raw, error);
    });
    detail::Handle<llvs_salvage_report, llvs_salvage_report_free> owned(raw);
    SalvageReport report;
    report.versions = raw->versions;
    report.waiting = raw->waiting;
    for (std::size_t i = 0; i < raw->made_count; i++) {
        const llvs_salvaged *one = raw->made[i];
        report.made.push_back({detail::string(one->original), detail::string(one->version), one->is_complete != 0});
    }
    report.damages = detail::damages(raw->damages, raw->damage_count);
    return report;
}

} // namespace llvs

#endif
