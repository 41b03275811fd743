// Reports of a store, and the manifests of snapshots. Part of llvs.hpp.
#ifndef LLVS_REPORTS_HPP
#define LLVS_REPORTS_HPP

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model.hpp"

namespace llvs {

/// A damage: stored bytes that differ from what was written; see llvs_damage.
struct Damage {
    llvs_loss lost;
    std::string file;
    std::uint64_t offset;
    std::string message, version, value_id, caused_by;
};

/// The report of a verification; see llvs_store_verify.
struct VerifyReport {
    /// Versions and values read, and pending versions.
    std::uint64_t versions = 0, values = 0, pending = 0;
    /// The damages, and the unfinished files, which are no damages.
    std::vector<Damage> damages, unfinished;
    /// Versions of the history that the ids of the heads vouch for, and all others.
    std::uint64_t vouched = 0, unvouched = 0;
    /// Values whose bytes are gone by intent; not among the values read.
    std::uint64_t forgotten = 0;
};

/// The bytes of one group of a size report; see llvs_size_row.
struct SizeRow {
    llvs_size_group group = 0;
    std::string name;
    std::uint64_t combined = 0, values = 0, value_bytes = 0, bytes = 0, current_bytes = 0, past_bytes = 0;
};

/// What takes space in a store; see llvs_size_report.
struct SizeReport {
    std::uint64_t versions = 0, unread = 0, values = 0, value_bytes = 0, bytes = 0, current_bytes = 0, past_bytes = 0;
    /// The rows by kind, prefix, month and version.
    std::vector<SizeRow> rows;

    /// Returns the rows of one group.
    std::vector<SizeRow> by(llvs_size_group group) const {
        std::vector<SizeRow> found;
        for (const SizeRow &row : rows)
            if (row.group == group) found.push_back(row);
        return found;
    }
};

/// What to count, and how; see llvs_size_options.
struct SizeOptions {
    std::string prefix;
    /// LLVS_SIZE_EACH_ID makes a group of each id.
    std::uint32_t depth = 1;
    std::uint64_t limit = 1000;
};

/// Which values to erase; see llvs_erase_options.
struct EraseOptions {
    std::vector<std::string> ids;
    /// Empty: everything that was ever stored under the ids.
    std::string version;
    /// All values that contain these bytes are erased, too.
    std::string containing;
    /// Prevails afterwards at heads at which an erased value prevails. Without it the values are removed there.
    std::optional<std::string> replacement;
    std::string why;
    bool dry_run = false;
    /// For the mode "stewards": the private key of a steward, 32 bytes.
    std::string signer;
};

/// Where bytes that an order to erase names may be, beside the store; see llvs_erasure_place.
struct ErasurePlace {
    std::string name;
    llvs_erasure_reach reach = LLVS_ERASURE_OUT_OF_REACH;
    llvs_erasure_reason reason = LLVS_ERASURE_REASON_NONE;
    /// In seconds since 1970; 0: not known.
    double last_seen = 0;
};

/// What was erased, or would be; see llvs_erase_report.
struct EraseReport {
    std::uint64_t values = 0, versions = 0, bytes = 0, copies = 0, rewritten = 0, unread = 0;
    std::vector<std::string> orders, made;
    /// Where the bytes still are in the store, and what has to happen so that they go.
    std::vector<std::string> waiting;
    /// Where else the bytes may be.
    std::vector<ErasurePlace> places;
};

/// How to forget values; see llvs_forget_options.
struct ForgetOptions {
    bool dry_run = false;
    /// For a dry run: JSON of a policy instead of the one of the store.
    std::string policy;
};

/// What only one rule of a policy keeps; see llvs_forget_row.
struct ForgetRow {
    /// LLVS_FORGET_...
    llvs_forget_rule rule = 0;
    std::uint64_t values = 0, bytes = 0;
};

/// What was forgotten, or would be; see llvs_forget_report.
struct ForgetReport {
    std::uint64_t values = 0, versions = 0, bytes = 0, rewritten = 0;
    std::vector<ForgetRow> rows;
    /// Where bytes still are in the store, and what has to happen so that they go.
    std::vector<std::string> waiting;
};

/// An order to erase values; see llvs_erasure.
struct Erasure {
    std::string id, version, made, why;
    std::uint64_t values = 0;
    bool followed = false;
    /// LLVS_ERASURE_...
    llvs_erasure_state state = LLVS_ERASURE_NOT_VALID;
    bool of_other = false;
    /// When an announced order is followed, in seconds since 1970; else 0.
    double due = 0;
    /// Where else the bytes may be.
    std::vector<ErasurePlace> places;
    /// For the mode "stewards": how many signed it, and how many must.
    std::uint32_t signatures = 0, needed = 0;
};

/// An item that could not be exchanged or restored, and why.
struct Problem {
    llvs_status code = LLVS_OK;
    std::string name, message;
};

/// The manifest of a snapshot.
struct Snapshot {
    std::string id, format;
    VersionID latest_version;
    /// Seconds since 1970.
    double created_at = 0;
    std::uint64_t version_count = 0;
    std::uint32_t chunk_count = 0;
    /// Bytes of all chunks.
    std::uint64_t total_size = 0;
    /// Of a restored snapshot: the skipped versions; see llvs_snapshot.
    std::vector<Problem> problems;
};

namespace detail {

inline std::vector<Damage> damages(const llvs_damage *const *items, std::size_t count) {
    std::vector<Damage> found;
    for (std::size_t i = 0; i < count; i++) {
        const llvs_damage &one = *items[i];
        found.push_back({one.lost, string(one.file), one.offset, string(one.message), string(one.version), string(one.value_id),
                         string(one.caused_by)});
    }
    return found;
}

inline std::vector<Problem> problems(const llvs_problem *const *items, std::size_t count) {
    std::vector<Problem> found;
    for (std::size_t i = 0; i < count; i++) found.push_back({items[i]->code, string(items[i]->name), string(items[i]->message)});
    return found;
}

/// Calls `call(&manifest, &error)`.
template <typename Call>
std::optional<Snapshot> snapshot(Call call) {
    llvs_snapshot *raw = nullptr;
    run([&](llvs_error **error) { return call(&raw, error); });
    if (!raw) return std::nullopt;
    Handle<llvs_snapshot, llvs_snapshot_free> owned(raw);
    return Snapshot{ string(raw->id),
                     string(raw->format),
                     string(raw->latest_version),
                     raw->created_at,
                     raw->version_count,
                     raw->chunk_count,
                     raw->total_size,
                     problems(raw->problems, raw->problem_count) };
}

} // namespace detail

/// The report of a compaction; see llvs_compaction_report.
struct CompactionReport {
    std::uint64_t folded = 0, made = 0, deleted = 0, bytes_written = 0, bytes_deleted = 0;
    /// If nothing was done because a syncing program copies the store: the path of the file that shows this.
    std::optional<std::string> sync_marker;
};

} // namespace llvs

#endif
