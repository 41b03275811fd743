// Options of histories and versions. Part of llvs.hpp.
#ifndef LLVS_OPTIONS_HPP
#define LLVS_OPTIONS_HPP

#include <map>
#include <string>
#include <vector>

#include "model.hpp"
#include "values.hpp"

namespace llvs {

/// Selects versions of a history: those that satisfy all given conditions.
struct HistoryOptions {
    /// These versions and their ancestors; empty: all.
    std::vector<VersionID> from;
    /// Excludes these versions and their ancestors.
    std::vector<VersionID> hiding;
    /// Versions that carry this branch name; empty: any.
    std::string branch;
    /// Versions that recorded a change of a value whose id has this prefix; empty: any.
    std::string prefix;
};

/// What a version has in addition to its changes; see llvs_version_options.
struct VersionOptions {
    std::string id, branch;
    std::map<std::string, std::string> metadata;
    /// Further values to set, whose bytes are read in pieces.
    std::vector<ValueSource> sources;
    /// The timestamp of the version, in seconds since 1970; 0: now.
    double timestamp = 0;
    /// For saves of a coordinator only: the version that is expected to be current, or at which the values were read if `merges` is set.
    std::string expected;
    /// For saves of a coordinator only: whether to save and merge if a value has changed since `expected`; see llvs_version_options.
    bool merges = false;
};

namespace detail {

/// Options in their borrowed form, for one call.
class BorrowedOptions {
public:
    explicit BorrowedOptions(const VersionOptions &options) : entries_(options.metadata), sources_(options.sources) {
        raw_.id = bytes(options.id);
        raw_.branch = bytes(options.branch);
        raw_.metadata = entries_.entries.data();
        raw_.metadata_count = entries_.entries.size();
        raw_.timestamp = options.timestamp;
        raw_.expected = bytes(options.expected);
        raw_.merges = options.merges;
        sources_.put_into(raw_);
    }
    /// The handle, for calls of the C interface; this object owns it.
    const llvs_version_options *raw() const { return &raw_; }

private:
    Entries entries_;
    Sources sources_;
    llvs_version_options raw_ = LLVS_VERSION_OPTIONS_INIT;
};

} // namespace detail

} // namespace llvs

#endif
