// Versions, values and changes.
// Part of llvs.hpp.
#ifndef LLVS_MODEL_HPP
#define LLVS_MODEL_HPP

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "error.hpp"

namespace llvs {

/// The id of a version.
using VersionID = std::string;

/// A version; see llvs_version_info.
struct Version {
    VersionID id;
    std::vector<VersionID> predecessors;
    /// Orders versions: seconds since 1970, later than those of the ancestors.
    double timestamp = 0;
    /// When it was made, as far as this device knows: seconds since 1970.
    double made_at = 0;
    std::uint64_t value_data_size = 0;
    std::map<std::string, std::string> metadata;
    std::optional<std::string> branch;

    /// A copy of the library's struct.
    explicit Version(const llvs_version_info &info)
        : id(detail::string(info.id)), timestamp(info.timestamp), made_at(info.made_at), value_data_size(info.value_data_size) {
        for (std::uint32_t i = 0; i < info.predecessor_count; i++) predecessors.push_back(detail::string(info.predecessors[i]));
        for (std::size_t i = 0; i < info.metadata_count; i++)
            metadata[detail::string(info.metadata[i].key)] = detail::string(info.metadata[i].value);
        if (info.branch.data) branch = detail::string(info.branch);
    }
};

/// A value, and the version that stored it.
struct Value {
    std::string id, data;
    VersionID stored_version;
    /// Whether the bytes are present: LLVS_VALUE_HERE; or LLVS_VALUE_ERASED or LLVS_VALUE_FORGOTTEN, with an empty `data`. Reading a single
    /// value throws instead.
    llvs_value_state state = LLVS_VALUE_HERE;
};

/// A change to make, or one that was recorded.
struct Change {
    llvs_change_kind kind;
    std::string id, data;
    VersionID stored_version;
    /// For changes that were read: whether the bytes are present, as in Value.
    llvs_value_state state = LLVS_VALUE_HERE;

    /// Sets a new value.
    static Change insert(std::string id, std::string data) { return make(LLVS_CHANGE_INSERT, std::move(id), std::move(data)); }
    /// Sets a value, new or not.
    static Change update(std::string id, std::string data) { return make(LLVS_CHANGE_UPDATE, std::move(id), std::move(data)); }
    /// Removes a value.
    static Change remove(std::string id) { return make(LLVS_CHANGE_REMOVE, std::move(id)); }
    /// Keeps bytes that a version stored; for merges.
    static Change preserve(std::string id, VersionID stored) { return make(LLVS_CHANGE_PRESERVE, std::move(id), {}, std::move(stored)); }
    /// Keeps a removal; for merges.
    static Change preserve_removal(std::string id) { return make(LLVS_CHANGE_PRESERVE_REMOVAL, std::move(id)); }

private:
    static Change make(llvs_change_kind kind, std::string id, std::string data = {}, VersionID stored = {}) {
        return {kind, std::move(id), std::move(data), std::move(stored), LLVS_VALUE_HERE};
    }
};

namespace detail {

inline std::vector<llvs_change> borrow(const std::vector<Change> &changes) {
    std::vector<llvs_change> borrowed;
    borrowed.reserve(changes.size());
    for (const Change &change : changes)
        borrowed.push_back({change.kind, 0, bytes(change.id), bytes(change.data), bytes(change.stored_version)});
    return borrowed;
}

inline std::vector<Version> take(llvs_version_list *raw) {
    Handle<llvs_version_list, llvs_version_list_free> list(raw);
    std::vector<Version> versions;
    if (!raw) return versions;
    for (std::size_t i = 0; i < raw->count; i++) versions.emplace_back(*raw->items[i]);
    return versions;
}
inline std::optional<Version> take_one(llvs_version_list *raw) {
    std::vector<Version> versions = take(raw);
    return versions.empty() ? std::nullopt : std::optional<Version>(std::move(versions.front()));
}
inline std::vector<std::optional<Value>> take(llvs_value_list *raw) {
    Handle<llvs_value_list, llvs_value_list_free> list(raw);
    std::vector<std::optional<Value>> values;
    if (!raw) return values;
    for (std::size_t i = 0; i < raw->count; i++) {
        const llvs_value_info *info = raw->items[i];
        if (info->present) values.emplace_back(Value{string(info->id), string(info->data), string(info->stored_version), info->state});
        else values.emplace_back(std::nullopt);
    }
    return values;
}

/// Metadata and its borrowed form.
struct Entries {
    std::vector<llvs_metadata_entry> entries;
    explicit Entries(const std::map<std::string, std::string> &metadata) {
        for (const auto &entry : metadata) entries.push_back({bytes(entry.first), bytes(entry.second)});
    }
};

} // namespace detail

} // namespace llvs

#endif
