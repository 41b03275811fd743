/*
 * llvs/merging.h - merging: arbiters and rules, conflicts, revert and cherry-pick.
 *
 * A merge combines two versions in a new one. If both sides changed a value, an arbiter decides; without one, the rules of the store do,
 * and for values without rules the later change wins:
 *
 *     llvs_version_list *merged;
 *     llvs_error *error;
 *     if (llvs_store_merge(store, llvs_id(&ours), llvs_id(&theirs), NULL, NULL, &merged, &error) != LLVS_OK) {
 *         fprintf(stderr, "%s\n", llvs_error_message(error));
 *         llvs_error_free(error);
 *     } else {
 *         printf("%s\n", (const char *)merged->items[0]->id.data);
 *         llvs_version_list_free(merged);
 *     }
 *
 * CAVEATS
 *
 *  - An arbiter of the host must give the same result on every device, and each time: no clock, no random numbers.
 *  - There may be several common ancestors: see llvs_arbiter.
 *  - If one version is an ancestor of the other, nothing is stored, and the descendant is the result.
 *
 * llvs.h has an overview, and llvs/common.h the conventions.
 */
#ifndef LLVS_MERGING_H
#define LLVS_MERGING_H

#include "store.h"

LLVS_BEGIN_DECL

/* ------------------------------------------------------------------------------------------------
 * Merging
 * ------------------------------------------------------------------------------------------------ */

/** How one value differs between two versions and their common ancestor. Since 0.1. */
typedef uint32_t llvs_fork_kind;
enum llvs_fork_kind_value {
    /** Absent at the ancestor, present on one side. */
    LLVS_FORK_INSERTED = 1,
    /** Absent at the ancestor, different on both sides. Conflicting. */
    LLVS_FORK_TWICE_INSERTED = 2,
    /** Changed on one side. */
    LLVS_FORK_UPDATED = 3,
    /** Changed on both sides, differently. Conflicting. */
    LLVS_FORK_TWICE_UPDATED = 4,
    /** Removed on one side. */
    LLVS_FORK_REMOVED = 5,
    /** Removed on both sides. */
    LLVS_FORK_TWICE_REMOVED = 6,
    /** Removed on one side (`side`), changed on the other. Conflicting. */
    LLVS_FORK_REMOVED_AND_UPDATED = 7
};
/** A side of a merge. Since 0.1. */
typedef uint32_t llvs_side;
enum llvs_side_value { LLVS_SIDE_NONE = 0, LLVS_SIDE_FIRST = 1, LLVS_SIDE_SECOND = 2 };

/** One fork of a merge. Since 0.1. */
typedef struct llvs_fork {
    uint32_t struct_size;
    llvs_fork_kind kind;
    /** The side of the change, for inserted, updated and removed; the side of the removal, for removed-and-updated; else none. */
    llvs_side side;
    /** 1 if an arbiter must decide. */
    llvs_bool conflicting;
    /** The value id. */
    llvs_bytes id;
    /**
     * The versions that stored the value that prevails at the first version, the second and their ancestor; empty if it is absent there.
     */
    llvs_bytes first;
    llvs_bytes second;
    llvs_bytes ancestor;
    /**
     * The versions that stored the values at the best common ancestors, each once. Usually that is `ancestor` alone. If versions were
     * merged across each other, there may be several ancestors with different values. Then a part of a value counts as changed on a side
     * only if it differs from that part in all of these values: an arbiter that treats an empty `ancestor` as an absent value loses edits.
     */
    const llvs_bytes *ancestors;
    size_t ancestor_count;
} llvs_fork;

/** One merge, as an arbiter sees it; lives for the callback only. Since 0.1. */
typedef struct llvs_merge {
    uint32_t struct_size;
    uint32_t reserved;
    /** The newer version: the merge's first predecessor. */
    const llvs_version_info *first;
    /** The older version. */
    const llvs_version_info *second;
    /** The first argument of the merge as it was called: `first` or `second`. */
    const llvs_version_info *ours;
    /** The second argument of the merge as it was called. */
    const llvs_version_info *theirs;
    /** The best common ancestors, newest first; empty when there are none. */
    const llvs_version_list *bases;
    /** The store, to read values at any version; making versions in it is allowed as well. Must not be freed. */
    llvs_store *store;
    /** The forks, conflicting or not, in byte order of their ids: llvs_merge_fork finds one. */
    const llvs_fork *const *forks;
    size_t fork_count;
} llvs_merge;
/** Returns the fork of a value id; NULL if there is none. O(log n). */
static inline const llvs_fork *llvs_merge_fork(LLVS_BORROWED const llvs_merge *merge, llvs_bytes id) {
    size_t low = 0, high = merge ? merge->fork_count : 0;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const llvs_bytes other = merge->forks[middle]->id;
        const size_t shorter = id.size < other.size ? id.size : other.size;
        const int order = shorter ? memcmp(other.data, id.data, shorter) : 0;
        if (order == 0 && other.size == id.size) return merge->forks[middle];
        if (order < 0 || (order == 0 && other.size < id.size)) low = middle + 1;
        else high = middle;
    }
    return 0;
}

/** The decisions of an arbiter; lives for the callback only. Since 0.1. */
typedef struct llvs_resolution llvs_resolution;
/**
 * Adds changes to the decisions of the arbiter; bytes are copied. Every conflicting fork needs one. Other ids may be changed, too. For
 * forks without a change, the store uses the value of the side that changed it. A second change of one id replaces the first.
 * @param changes, change_count, change_size  as for llvs_store_make_version
 * Errors: LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_UTF8, LLVS_ERROR_INVALID_VERSION_ID; nothing was added.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_resolution_add(LLVS_BORROWED llvs_resolution *resolution, LLVS_BORROWED const llvs_change *changes,
    size_t change_count, size_t change_size, LLVS_OWNED llvs_error **error);

/**
 * Decides the conflicts of merges. Safe from all threads. Since 0.1.
 *
 * There may be several common ancestors. If two devices merge the same two versions with different results, or put their names into the
 * metadata, the result is a criss-cross: both merges are built on both versions, and neither of these is *the* ancestor of later saves. For
 * a value that differs between the ancestors, `ancestor` of its fork is empty, as it is for an absent value; `ancestors` has the value of
 * each. So an arbiter that compares parts of values (fields of a record, lines of a text) must compare with all of them:
 *
 *     a side changed a part if the part on that side differs from the part in each of `ancestors`
 *
 * It takes the part from the side that changed it; if both or neither did, for example from `first`. An arbiter that compares with
 * `ancestor` alone sees changes where there are none, and loses edits. The arbiter in examples/c/branch_and_merge.c shows how.
 *
 * Devices that resolve in the same way make the same merge version, and have nothing left to exchange. So an arbiter must decide from the
 * merge and the store alone, never from a clock, a random number or the device that it runs on, and must write its bytes in one form.
 */
typedef struct llvs_arbiter llvs_arbiter;
/** The built-in arbiters. Since 0.1. */
typedef uint32_t llvs_arbiter_kind;
enum llvs_arbiter_kind_value {
    /** In each conflict the change that was stored in the later version wins; an update beats a removal. */
    LLVS_ARBITER_MOST_RECENT_CHANGE = 1,
    /** In every conflict the newer of the two versions wins, removals included. */
    LLVS_ARBITER_MOST_RECENT_BRANCH = 2,
    /** The first argument's side wins. Such merges depend on who makes them. */
    LLVS_ARBITER_OURS = 3,
    /** The second argument's side wins. */
    LLVS_ARBITER_THEIRS = 4
};
/** Makes a built-in arbiter. Since 0.1. */
LLVS_API LLVS_CHECKED llvs_status llvs_arbiter_builtin(llvs_arbiter_kind kind, LLVS_OWNED llvs_arbiter **arbiter,
    LLVS_OWNED llvs_error **error);
/**
 * Makes an arbiter that merges inside values, by rules: it keeps the changes of both sides. If it has to decide conflicts nevertheless, it
 * records their number in the metadata of the merge version, under "__llvs_conflicts": `{"hash":"<SHA-256 of the conflicts as
 * JSON>","ids":[<the first 64>],"n": <count>}`; such a version also has `"rules"` under "__llvs_arbiter". Values without rules are decided
 * as by LLVS_ARBITER_MOST_RECENT_CHANGE. NULL in place of an arbiter is the same as this one with empty rules.
 *
 * The rules of a store are its value "__llvs_schema", which is saved, exchanged and merged like other values:
 * `{"merge":1,"ids":{"contact/": {"/visits":"counter","/tags":"set"}}}`. Check it with llvs_schema_check before saving it: invalid rules
 * are ignored, and the newest valid ones before them are used. With a rule that counts (`"counter"`), the same bytes stored by two devices
 * are two events, and heads that hold them are not equal.
 * @param rules    as for llvs_merge_values: each merge uses these instead of the store's; all devices should pass the same. Empty: the
 *                 rules of the store
 * @param arbiter  the arbiter; owned by the caller
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (invalid rules: llvs_error_path is the JSON pointer to the mistake), LLVS_ERROR_UNSUPPORTED (rules of
 * a version that this library does not know), LLVS_ERROR_TOO_LARGE, LLVS_ERROR_OUT_OF_MEMORY. A merge with it fails with
 * LLVS_ERROR_UNSUPPORTED while one of the two versions holds rules of an unknown version. Any thread. Cost of a merge: what differs, and
 * the size of the values that both sides changed; without rules, as with LLVS_ARBITER_MOST_RECENT_CHANGE. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_arbiter_rules(llvs_bytes rules, LLVS_OWNED llvs_arbiter **arbiter, LLVS_OWNED llvs_error **error);
/**
 * Resolves one merge. Since 0.1.
 *   thread     the one that merges; several at once when several merge
 *   re-entry   may call the library, the store included; no lock is held. (To save or merge through the coordinator that is
 *              merging is LLVS_ERROR_BUSY.)
 *   pointers   live for the callback only
 *   result     LLVS_OK: resolved; LLVS_PASS: the fallback decides the conflicts that have no change yet; all else: the merge fails, stores
 *              nothing, and returns LLVS_ERROR_USER with the error in `error` (by llvs_error_create; optional)
 */
typedef llvs_status (*llvs_resolve_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_merge *merge,
                                       LLVS_BORROWED llvs_resolution *resolution, LLVS_OWNED llvs_error **error);
/**
 * Makes an arbiter of the host.
 * @param fallback  the arbiter that decides after LLVS_PASS; kept alive; NULL: none, so that conflicts without a change fail the merge
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_arbiter_create(llvs_resolve_fn resolve, LLVS_OWNED void *payload, llvs_free_fn payload_free,
    LLVS_BORROWED llvs_arbiter *fallback, LLVS_OWNED llvs_arbiter **arbiter, LLVS_OWNED llvs_error **error);
/** A question to a value merger; lives for the callback only. Since 0.1. */
typedef struct llvs_value_question {
    uint32_t struct_size;
    uint32_t reserved;
    /** The id of the value. */
    llvs_bytes id;
    /**
     * The place in the value, as a JSON array: names of members, `{"key":...}` for elements that have a key, `{"index":n}` for others.
     * `[]`: the value as a whole.
     */
    llvs_bytes path;
    /** The former content: the bytes of a whole value, or a part as JSON; NULL data if it was absent. */
    llvs_bytes base;
    /** The content on the side with the more recent value; as `base`. A side on which it is absent is the older. */
    llvs_bytes newer;
    /** The content on the other side; as `base`. */
    llvs_bytes older;
} llvs_value_question;
/**
 * Merges two sides of a value, or of a place in it. Since 0.1.
 *   thread     the one that merges; several at once when several merge
 *   re-entry   may call the library, the store included; no lock is held. (To save or merge through the coordinator that is
 *              merging is LLVS_ERROR_BUSY.)
 *   pointers   live for the callback only
 *   result     LLVS_OK: one change of this id was added to the resolution (llvs_resolution_add): an insert or update with the bytes of the
 *              value, or with the JSON of the place; or a remove, for no value. LLVS_PASS, without a change: decided as if there were no
 *              callback. All else: the merge fails, stores nothing, and returns LLVS_ERROR_USER with the error in `error` (by
 *              llvs_error_create; optional)
 */
typedef llvs_status (*llvs_merge_value_fn)(LLVS_BORROWED void *payload, LLVS_BORROWED const llvs_value_question *question,
                                           LLVS_BORROWED llvs_resolution *resolution, LLVS_OWNED llvs_error **error);
/**
 * Makes an arbiter that merges as llvs_arbiter_rules does, and asks the host about one value at a time: about each value without rules that
 * both sides changed, or that one changed and the other removed; and about each place that both sides changed and for which the rules say
 * so (`{"pick":"arbiter"}`). So values that are not JSON can be merged by their contents.
 *
 * If versions were merged across each other and have several common ancestors, the library first merges the ancestors' values, and may ask
 * the callback about these, too. So the callback need not handle such histories. It must decide from the question alone, give the same
 * result on all devices and each time, and write its bytes in one form. A merge that it decided in a store with rules has `"host"` under
 * "__llvs_arbiter". If devices decide differently nevertheless, one result prevails in the end (llvs_store_merge).
 * @param rules    as for llvs_arbiter_rules
 * @param arbiter  the arbiter; owned by the caller; released by llvs_arbiter_free
 * Errors: LLVS_ERROR_INVALID_ARGUMENT (invalid rules: llvs_error_path is the JSON pointer to the mistake), LLVS_ERROR_UNSUPPORTED (rules of
 * a version that this library does not know), LLVS_ERROR_TOO_LARGE, LLVS_ERROR_OUT_OF_MEMORY. A merge with it may also fail with
 * LLVS_ERROR_UNRESOLVED_CONFLICT (LLVS_OK without one change of the id) and LLVS_ERROR_INVALID_ARGUMENT (a result for a place that is not
 * JSON). Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_value_merger_create(llvs_merge_value_fn merge, LLVS_OWNED void *payload, llvs_free_fn payload_free,
    llvs_bytes rules, LLVS_OWNED llvs_arbiter **arbiter, LLVS_OWNED llvs_error **error);
/** Releases the arbiter. Since 0.1. */
LLVS_API void llvs_arbiter_free(LLVS_OWNED llvs_arbiter *arbiter);

/** Whether versions without a common ancestor may be merged. Since 0.1. */
typedef uint32_t llvs_relation;
enum llvs_relation_value {
    /** The default: three-way if there is a common ancestor, else two-way. */
    LLVS_RELATION_ANY = 0,
    /** LLVS_ERROR_NO_COMMON_ANCESTOR if there is none. */
    LLVS_RELATION_RELATED = 1,
    /** Always two-way, as if the ancestor were empty. */
    LLVS_RELATION_UNRELATED = 2
};
/** Which heads to merge. Since 0.1. */
typedef uint32_t llvs_head_selection;
enum llvs_head_selection_value {
    /**
     * The default: all heads without a branch. These are the versions without a branch that are not ancestors of other versions without a
     * branch. So a version on a branch does not hide the version that it was made from.
     */
    LLVS_HEADS_UNBRANCHED = 0,
    /** All heads, on branches or not. */
    LLVS_HEADS_ALL = 1,
    /** Heads without a branch, and heads on `branches`. */
    LLVS_HEADS_UNBRANCHED_AND_BRANCHES = 2,
    /** Heads on `branches` only. */
    LLVS_HEADS_BRANCHES = 3
};
/** How to merge or revert. Since 0.1. */
typedef struct llvs_merge_options {
    uint32_t struct_size;
    /** For llvs_store_merge. */
    llvs_relation relation;
    /** For llvs_store_merge_heads and llvs_coordinator_merge. */
    llvs_head_selection selection;
    /**
     * For llvs_store_revert and llvs_store_cherry_pick of a merge: the predecessor with which the merge is compared; LLVS_SIDE_NONE: the
     * first.
     */
    llvs_side parent;
    /** Names for the selection, UTF-8. */
    const llvs_bytes *branches;
    size_t branch_count;
    /** Of the new version. */
    const llvs_metadata_entry *metadata;
    size_t metadata_count;
    /**
     * Progress and cancellation; may be NULL. When heads are merged, progress counts heads (LLVS_STAGE_ADDING); when two versions are
     * merged, or one is undone, it counts values examined (LLVS_STAGE_READING). After a cancellation nothing is stored.
     */
    const llvs_control *control;
    /** For llvs_coordinator_undo: the version to undo, of any device; empty: the last save of this device. */
    llvs_bytes version;
} llvs_merge_options;
#define LLVS_MERGE_OPTIONS_INIT { (uint32_t)sizeof(llvs_merge_options), 0, 0, 0, 0, 0, 0, 0, 0, LLVS_NONE_INIT }

/**
 * Merges two versions. If one is an ancestor of the other, or both are the same, nothing is stored and the descendant is the result. The
 * result does not depend on the order of the arguments (unless the arbiter uses ours and theirs).
 *
 * A side changed a value if the value's bytes on that side differ from those at the common ancestor. A side that stored the same bytes
 * again, or changed a value and restored the bytes, changed nothing: the change of the other side prevails, however old it is. A value with
 * the same bytes on both sides is not a fork, although llvs_store_differences lists it if each side stored it. The exception is a value
 * that rules of the store count (llvs_arbiter_rules).
 *
 * In two cases the arbiter is not called, and the new version has no metadata except "__llvs_arbiter": if both versions hold the same bytes
 * under each id, and if since their common ancestors both contain only merges, which include all saves of both sides. Then one of the two
 * states prevails as a whole. A version with `"host"` under "__llvs_arbiter" (an arbiter of the host decided, in a store with rules) wins
 * over one with `"rules"`, and that over one without the entry. If both have the same, take the first id, in byte order, at which they
 * differ: the version whose value was stored later wins, and a value wins over none.
 * @param arbiter  decides conflicts; NULL: the rules of the store, or most recent change if it has none (llvs_arbiter_rules)
 * @param options  may be NULL
 * @param version  a list of the one resulting version; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_UNRESOLVED_CONFLICT, LLVS_ERROR_NO_COMMON_ANCESTOR,
 * LLVS_ERROR_INVALID_REFERENCE, LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_UNSUPPORTED (rules of an unknown version), LLVS_ERROR_USER (from
 * the arbiter, or the progress callback), LLVS_ERROR_CANCELLED, storage errors. Nothing is stored then. Cost: what differs, times log n.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_merge(LLVS_BORROWED llvs_store *store, llvs_bytes ours, llvs_bytes theirs,
    LLVS_BORROWED llvs_arbiter *arbiter, LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_version_list **version,
    LLVS_OWNED llvs_error **error);
/**
 * Merges a version and the selected heads, all of them or none. If a head cannot be merged because it or an ancestor is damaged in this
 * store, it is skipped: it stays a head, the log has a warning, and it is merged after a retrieve has repaired it. If `into` or an ancestor
 * of it is damaged, the call fails with LLVS_ERROR_DAMAGED.
 * @param into     a version to which the heads are added
 * @param version  a list of the one resulting version; NULL if nothing changed; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_UNRESOLVED_CONFLICT, LLVS_ERROR_NO_COMMON_ANCESTOR,
 * LLVS_ERROR_INVALID_REFERENCE, LLVS_ERROR_INVALID_METADATA, LLVS_ERROR_UNSUPPORTED (rules of an unknown version), LLVS_ERROR_USER (from
 * the arbiter, or the progress callback), LLVS_ERROR_CANCELLED, storage errors. Nothing is stored then. Cost: with a built-in arbiter, the
 * changes of each head since it forked off, and the number of versions once. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_merge_heads(LLVS_BORROWED llvs_store *store, llvs_bytes into,
    LLVS_BORROWED llvs_arbiter *arbiter, LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_version_list **version,
    LLVS_OWNED llvs_error **error);
/** What a conflict is about. Since 0.1. */
typedef uint32_t llvs_conflict_kind;
enum llvs_conflict_kind_value {
    /** Both sides changed a value that is not merged inside: one of them prevails. */
    LLVS_CONFLICT_PICK = 1,
    /**
     * One side removed what the other changed. For a value, one side is absent. For lines of a text, both sides are JSON strings with whole
     * lines, and one of them may be empty; the changed lines stay.
     */
    LLVS_CONFLICT_DELETE_EDIT = 2,
    /** The sides have different types, or a type that the rule does not apply to. */
    LLVS_CONFLICT_TYPE = 3,
    /** A side is not JSON that can be merged. */
    LLVS_CONFLICT_NOT_JSON = 4,
    /** Both sides changed the same lines of a text differently. The conflict's values are these lines, whole, as JSON strings. */
    LLVS_CONFLICT_OVERLAP = 5,
    /**
     * Both sides moved an element of a list to different positions. If there are more than 64 in one list, there is one conflict for the
     * list.
     */
    LLVS_CONFLICT_MOVE_MOVE = 6,
    /** The sides hold two values between which an earlier merge had to choose. */
    LLVS_CONFLICT_CONTESTED = 7,
    /** A counter is outside of the bounds that its rule gives. For information only: the result contains both sides. */
    LLVS_CONFLICT_BOUND = 8,
    /**
     * A limit was reached. For a text: it was compared in less detail, since the sides differ too much; or it has too many parts, and one
     * side prevails. For a counter: the sum has too many digits, and one side prevails. For the whole value (the path is []), one of two
     * things:
     *
     * - The merged value would be too large, or could not be merged again. The newer side prevails; if the newer side removed the value,
     *   the older one.
     * - The value is merged, and has too many conflicts: they exceed four times the three inputs plus 1 MiB. They are not reported one by
     *   one, neither by the merge nor by llvs_store_explain and llvs_store_open_conflicts. This one conflict replaces them, also in the
     *   digest of the merge version. It has the whole values, which the caller can compare.
     */
    LLVS_CONFLICT_LIMIT = 9,
    /** Both sides changed a place that the rules leave to a value merger of the host; without one, the newer prevails. */
    LLVS_CONFLICT_ARBITER = 10
};
/** A decision of a merge: both sides had changed the same part. Borrowed from the object that reported it. Since 0.1. */
typedef struct llvs_conflict {
    uint32_t struct_size;
    llvs_conflict_kind kind;
    /** The place in the value, as a JSON array: names of members, `{"key":...}` for elements that have a key, `{"index":n}` for others. */
    llvs_bytes path;
    /** The former content, as JSON; NULL data if it was absent. Bytes that are not JSON are `{"sha256":"...","size":n}`. */
    llvs_bytes base;
    /** The content on the newer side; as `base`. */
    llvs_bytes newer;
    /** The content on the older side; as `base`. */
    llvs_bytes older;
    /** The result of the merge; as `base`. */
    llvs_bytes result;
    /** The id prefix under which the rule for this place is registered; NULL data if there is none. */
    llvs_bytes rule_prefix;
    /** The pattern of the rule; NULL data if there is none. */
    llvs_bytes rule_pattern;
    /** The id of the value; empty from llvs_merge_values without an id. */
    llvs_bytes id;
    /** The merge version that decided it; empty if there is none. */
    llvs_bytes version;
} llvs_conflict;
/** The result of undoing or picking a version; immutable, owned. Since 0.1. */
typedef struct llvs_revert_result {
    uint32_t struct_size;
    /**
     * From llvs_store_cherry_pick: 1 if some of the picked values have rules that count; after a merge of both lines, their changes count
     * twice.
     */
    llvs_bool counts;
    /** The new version; NULL if there was nothing left to undo, and nothing was stored. */
    const llvs_version_info *version;
    /**
     * The ids of the values that were changed, in byte order. After an undo: values of which a part, or all, is as it was before the
     * version. After a pick: values that took something from it.
     */
    const llvs_bytes *undone;
    size_t undone_count;
    /**
     * The ids of values that keep something which the version changed, in byte order. A part stays if it was changed again later, to other
     * contents than before the version. If rules merge inside a value, the value may be in both lists. Two more kinds of values are listed:
     * those to which an undone version added members while it converted them to a later form (these members stay), and those for which it
     * is unknown what lost against the version in a merge, because a host decided.
     */
    const llvs_bytes *superseded;
    size_t superseded_count;
    /** The conflicts that were decided, in byte order of the ids; NULL after the last. */
    const llvs_conflict *const *conflicts;
    size_t conflict_count;
    /** The versions that were undone, newest first. */
    const llvs_bytes *versions;
    size_t version_count;
    /** From llvs_coordinator_undo and llvs_coordinator_redo: the description of the save; empty if it has none. */
    llvs_bytes description;
} llvs_revert_result;
/** Releases the result. Since 0.1. */
LLVS_API void llvs_revert_result_free(LLVS_OWNED llvs_revert_result *result);
/**
 * Records the inverse of a version's changes on top of a head: undoes the version without losing later changes. It is a merge with the
 * version as the base, the head as the newer side and the version's predecessor as the older. Values with rules are merged inside, so later
 * changes stay, member by member; other values are undone as a whole or not at all. Values that were removed later stay removed. If the
 * version won a conflict in a later merge, the change that lost is restored.
 * @param version   the version whose changes to undo
 * @param at        the new version's predecessor
 * @param options   parent, metadata and control; may be NULL
 * @param result    the new version, and the values that were undone and those that were not; may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_UNKNOWN_PREDECESSOR, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_METADATA,
 * LLVS_ERROR_INVALID_ARGUMENT (the second predecessor of a version that has none), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress
 * callback), storage errors. Nothing is stored then. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_revert(LLVS_BORROWED llvs_store *store, llvs_bytes version, llvs_bytes at,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_revert_result **result, LLVS_OWNED llvs_error **error);
/**
 * Applies a version's changes again on top of a head: a merge with the version's predecessor as the base and the version as the newer side.
 * If the two lines are merged later, changes of counters count twice (`counts`): pick only between lines that will not be merged, or pick
 * no counters.
 * @param version   the version whose changes to apply
 * @param onto      the new version's predecessor
 * @param options   parent, metadata and control; may be NULL
 * @param result    the new version, the ids of values that took something from it, those of values that kept other contents, and conflicts;
 *                  may be NULL
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_UNKNOWN_PREDECESSOR, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_METADATA,
 * LLVS_ERROR_INVALID_ARGUMENT (the second predecessor of a version that has none), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress
 * callback), storage errors. Nothing is stored then. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_cherry_pick(LLVS_BORROWED llvs_store *store, llvs_bytes version, llvs_bytes onto,
    LLVS_BORROWED const llvs_merge_options *options, LLVS_OWNED llvs_revert_result **result, LLVS_OWNED llvs_error **error);

/* ------------------------------------------------------------------------------------------------
 * Merging inside values
 * ------------------------------------------------------------------------------------------------ */

/** Where the bytes of a merged value come from. Since 0.1. */
typedef uint32_t llvs_merged_source;
enum llvs_merged_source_value {
    /** The merged value is absent. */
    LLVS_MERGED_ABSENT = 0,
    /** The bytes are the newer side's. */
    LLVS_MERGED_NEWER = 1,
    /** The bytes are the older side's. */
    LLVS_MERGED_OLDER = 2,
    /** They are new. */
    LLVS_MERGED_COMPUTED = 3
};
/** The result of merging a value. Released by llvs_merged_value_free. Since 0.1. */
typedef struct llvs_merged_value {
    uint32_t struct_size;
    llvs_merged_source source;
    /** The bytes; NULL data if there is no value. */
    llvs_bytes data;
    /** The records in the order in which they were found; NULL after the last. */
    const llvs_conflict *const *conflicts;
    size_t conflict_count;
    /** SHA-256 of the conflicts as canonical JSON, 64 hexadecimal digits; empty if there are none. */
    llvs_bytes digest;
} llvs_merged_value;
/** How to merge a value. Since 0.1. */
typedef struct llvs_merge_values_options {
    uint32_t struct_size;
    /**
     * 1: merge for saving. The older side is the value that the application read, as stored; the base is the application's own form of that
     * value, unchanged; the newer side is what it wants to save. So members that the application does not know are kept, members that it
     * removed are gone, and its changes win.
     */
    llvs_bool saving;
    /** The id of the value: it selects the rules, and is the `id` in the JSON that `digest` is computed from. May be empty. */
    llvs_bytes id;
    /** Progress (LLVS_STAGE_READING) and cancellation; may be NULL. */
    const llvs_control *control;
} llvs_merge_values_options;
#define LLVS_MERGE_VALUES_OPTIONS_INIT { (uint32_t)sizeof(llvs_merge_values_options), 0, LLVS_NONE_INIT, 0 }
/**
 * Merges two sides of a value: inside it, if it is JSON or the rules say that it is text. Needs no store. The same arguments give the same
 * bytes on every machine. There is always a result; decisions are reported as conflicts.
 * @param rules    JSON: a rule (`"auto"`, `{"as":"counter"}`), patterns with rules (`{"/tags":"set"}`), or a whole value of the kind that
 *                 is stored under "__llvs_schema" (`{"merge":1,"ids":{...}}`), of which the rules for the options' id apply; empty:
 *                 `"auto"`
 * @param base     the value that both sides had; NULL if it was absent
 * @param newer    the value on the side with the more recent change; NULL if it is absent
 * @param older    the value on the other side; NULL if it is absent
 * @param options  may be NULL
 * @param merged   the result; owned by the caller
 * Any thread. Errors: LLVS_ERROR_INVALID_ARGUMENT (invalid rules: llvs_error_path is the JSON pointer to the mistake),
 * LLVS_ERROR_UNSUPPORTED (rules of a version that this library does not know), LLVS_ERROR_TOO_LARGE, LLVS_ERROR_CANCELLED, LLVS_ERROR_USER
 * (from the progress callback), LLVS_ERROR_OUT_OF_MEMORY. Cost: the size of the values; a value that only one side changed is not parsed.
 * Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_merge_values(llvs_bytes rules, LLVS_BORROWED const llvs_bytes *base,
    LLVS_BORROWED const llvs_bytes *newer, LLVS_BORROWED const llvs_bytes *older,
    LLVS_BORROWED const llvs_merge_values_options *options, LLVS_OWNED llvs_merged_value **merged, LLVS_OWNED llvs_error **error);
/** Conflicts of a merge; immutable, owned. Since 0.1. */
typedef struct llvs_conflict_list {
    uint32_t struct_size;
    /**
     * From llvs_store_explain: whether these are the conflicts that the merge version recorded. If not, it was made with other rules than
     * those of the store, or by an arbiter of the host. From other calls: 1.
     */
    llvs_bool recorded;
    size_t count;
    /** In byte order of the value ids, and for each value in the order in which they were found; NULL after the last. */
    const llvs_conflict *const *items;
    /** SHA-256 of the conflicts that rules decided, 64 hexadecimal digits, as merge versions record it; empty if there are none. */
    llvs_bytes digest;
} llvs_conflict_list;
/** Releases the list. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_conflict_list_free(LLVS_OWNED llvs_conflict_list *list);
/** Releases a merged value with all that it points to. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_merged_value_free(LLVS_OWNED llvs_merged_value *merged);
/**
 * Checks rules as they are stored under "__llvs_schema".
 * @param rules  a whole value: `{"merge":1,"ids":{...}}`
 * Errors: LLVS_ERROR_INVALID_ARGUMENT, LLVS_ERROR_UNSUPPORTED (the rules have an unknown version), each with the JSON pointer to the
 * mistake as llvs_error_path, and the reason as its message; LLVS_ERROR_TOO_LARGE, LLVS_ERROR_OUT_OF_MEMORY. Any thread. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_schema_check(llvs_bytes rules, LLVS_OWNED llvs_error **error);
/** Which conflicts to list, and how. Since 0.1. */
typedef struct llvs_conflict_options {
    uint32_t struct_size;
    uint32_t reserved;
    /** Only the conflicts of this value; empty: of all. */
    llvs_bytes value_id;
    /** An arbiter of llvs_arbiter_rules, whose rules are used instead of the store's; NULL: the store's. */
    llvs_arbiter *arbiter;
    /** Progress (LLVS_STAGE_READING, in values examined) and cancellation; may be NULL. */
    const llvs_control *control;
} llvs_conflict_options;
#define LLVS_CONFLICT_OPTIONS_INIT { (uint32_t)sizeof(llvs_conflict_options), 0, LLVS_NONE_INIT, 0, 0 }
/**
 * Lists the conflicts that a merge of two versions by rules would have to decide, with the decisions. Nothing is stored. Conflicts of
 * values without rules are included: their path is `[]`, and their kind is LLVS_CONFLICT_PICK or LLVS_CONFLICT_DELETE_EDIT.
 *
 * There are none if one version is an ancestor of the other, if both hold the same values, and if the arbiter would not be asked
 * (llvs_store_merge).
 * @param options    may be NULL
 * @param conflicts  the list; owned by the caller
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_ARGUMENT (another
 * arbiter), LLVS_ERROR_UNSUPPORTED (rules of an unknown version), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback),
 * storage errors. Any thread. Cost: that of the merge, and the values that both sides changed. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_conflicts(LLVS_BORROWED llvs_store *store, llvs_bytes ours, llvs_bytes theirs,
    LLVS_BORROWED const llvs_conflict_options *options, LLVS_OWNED llvs_conflict_list **conflicts, LLVS_OWNED llvs_error **error);
/**
 * Lists the decisions of a merge version, by merging its two predecessors again. If rules did not decide, `result` is the content at the
 * version. For a version that is not a merge the list is empty.
 * @param options    may be NULL
 * @param conflicts  the list; owned by the caller
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_ARGUMENT (another
 * arbiter), LLVS_ERROR_UNSUPPORTED (rules of an unknown version), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback),
 * storage errors. Any thread. Cost: that of the merge, and the values that both sides changed. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_explain(LLVS_BORROWED llvs_store *store, llvs_bytes version,
    LLVS_BORROWED const llvs_conflict_options *options, LLVS_OWNED llvs_conflict_list **conflicts, LLVS_OWNED llvs_error **error);
/**
 * Lists the conflicts that are open at a version, to show them to a person. A conflict is open if the version or an ancestor is a merge
 * that decided it by rules, its result still prevails, and no later edit or choice (llvs_store_choose) replaced it. Oldest merge first. A
 * conflict that several merges decided is listed once.
 * @param at         the version
 * @param options    may be NULL
 * @param conflicts  the list; owned by the caller
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_VALUE_ID, LLVS_ERROR_INVALID_ARGUMENT (another
 * arbiter), LLVS_ERROR_UNSUPPORTED (rules of an unknown version), LLVS_ERROR_CANCELLED, LLVS_ERROR_USER (from the progress callback),
 * storage errors. Any thread. Cost: the merges among the ancestors, merging those again that recorded conflicts, and reading the later
 * versions of the values in which such results still prevail: once for each 64 such merges, with a check of each remaining place. Since
 * 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_open_conflicts(LLVS_BORROWED llvs_store *store, llvs_bytes at,
    LLVS_BORROWED const llvs_conflict_options *options, LLVS_OWNED llvs_conflict_list **conflicts, LLVS_OWNED llvs_error **error);
/** How a person decides an open conflict. Since 0.1. */
typedef uint32_t llvs_choice;
enum llvs_choice_value {
    /** The newer side. */
    LLVS_CHOICE_NEWER = 1,
    /** The older side. */
    LLVS_CHOICE_OLDER = 2,
    /** The result of the merge. */
    LLVS_CHOICE_RESULT = 3
};
/**
 * Makes the changes that close an open conflict. Nothing is stored: save them on `at`, with llvs_store_make_version, or with
 * llvs_coordinator_save and `at` as `expected`. If a side is chosen that differs from the result, the change is the value with that side in
 * its place. If the result is chosen, the change is a value under an id that begins with "__llvs_chosen/", which reports to all devices
 * that a person chose. For a part of a text there are both changes, if the earlier result is a part of the chosen side. For the kinds
 * LLVS_CONFLICT_MOVE_MOVE and LLVS_CONFLICT_BOUND, and for LLVS_CONFLICT_DELETE_EDIT at a counter, only the result can be chosen: to change
 * it, save the list or the number that is wanted.
 * @param at        a version, usually the current one
 * @param conflict  a conflict that llvs_store_explain or llvs_store_open_conflicts reported: `id`, `version`, `kind`, `path`, `base`,
 *                  `newer`, `older`, `result` and the rule
 * @param changes   the list of changes; owned by the caller
 * Errors: LLVS_ERROR_MOVED (at that version the place has other contents by now, or a side of a part of a text was chosen),
 * LLVS_ERROR_INVALID_ARGUMENT (a conflict without a version, or without the sides that its kind has; a side of a kind that has no sides to
 * choose; an ambiguous choice), LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, storage errors. Any thread. Cost: the size of
 * the value. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_choose(LLVS_BORROWED llvs_store *store, llvs_bytes at,
    LLVS_BORROWED const llvs_conflict *conflict, llvs_choice choice, LLVS_OWNED llvs_change_list **changes, LLVS_OWNED llvs_error **error);
/** The rules of a store, or the result of registering more; immutable, owned. Since 0.1. */
typedef struct llvs_schema {
    uint32_t struct_size;
    /** Whether `data` differs from the value that prevails under "__llvs_schema": it has to be saved, or was saved. */
    llvs_bool changed;
    /** The valid rules, with the given ones added, as JSON; NULL data if there are none. */
    llvs_bytes data;
    /** The version that stored the rules that were valid before; empty if there were none. */
    llvs_bytes stored_version;
    /**
     * Why the rules that prevail are invalid; empty if they are valid, or there are none. If they are invalid, `data` is based on the
     * newest valid value before them.
     */
    llvs_bytes problem;
    /** The place of the mistake, as a JSON pointer. */
    llvs_bytes problem_path;
    /**
     * Places where the given rules contradict the rules of the store: `path` is the place, `newer` and `result` are the store's rule, which
     * stays, and `older` is the given rule. NULL after the last.
     */
    const llvs_conflict *const *contradictions;
    size_t contradiction_count;
    /** The new version, from llvs_coordinator_register_schema only; NULL if none was made. */
    const llvs_version_info *version;
} llvs_schema;
/** Releases the schema with all that it points to. NULL is a no-op. Since 0.1. */
LLVS_API void llvs_schema_free(LLVS_OWNED llvs_schema *schema);
/**
 * Returns the rules of a store at a version, with the given rules added to them. Nothing is stored.
 *
 * Adds prefixes and patterns that the store does not have, and members of other sections (`"models"`, `"indexes"`). If both have a rule for
 * one pattern and the two differ in meaning, the store's stays, and the contradiction is reported. To change it nevertheless, save the
 * value "__llvs_schema" with the new rule.
 * @param at      a version
 * @param rules   the rules to add: a whole value of the kind that is stored under "__llvs_schema"; empty: none
 * @param schema  the result; owned by the caller
 * Errors: LLVS_ERROR_UNKNOWN_VERSION, LLVS_ERROR_INVALID_VERSION_ID, LLVS_ERROR_INVALID_ARGUMENT (invalid rules: llvs_error_path is the
 * JSON pointer to the mistake), LLVS_ERROR_UNSUPPORTED (the given rules have an unknown version; or some are given, and the store's have
 * one), storage errors. Any thread. Cost: the size of the rules. Since 0.1.
 */
LLVS_API LLVS_CHECKED llvs_status llvs_store_schema(LLVS_BORROWED llvs_store *store, llvs_bytes at, llvs_bytes rules,
    LLVS_OWNED llvs_schema **schema, LLVS_OWNED llvs_error **error);

LLVS_LAYOUT(llvs_fork, 96);
LLVS_LAYOUT(llvs_merge, 72);
LLVS_LAYOUT(llvs_merge_options, 72);
LLVS_LAYOUT(llvs_conflict, 152);
LLVS_LAYOUT(llvs_merged_value, 56);
LLVS_LAYOUT(llvs_merge_values_options, 32);
LLVS_LAYOUT(llvs_schema, 96);
LLVS_LAYOUT(llvs_conflict_list, 40);
LLVS_LAYOUT(llvs_conflict_options, 40);
LLVS_LAYOUT(llvs_value_question, 88);
LLVS_LAYOUT(llvs_revert_result, 96);

LLVS_END_DECL

#endif
