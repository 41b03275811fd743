#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "outcomes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"

enum { SECTOR = 512, NOBODY = -1 };

/* A file or folder, under any names. */
struct node {
    int is_folder;
    uint64_t inode;
    const uint8_t *base;
    uint64_t base_size;
    /* The bytes of the file after the cut. */
    uint8_t *bytes;
    uint64_t size, room;
};
/* A name in a folder. */
struct name {
    int folder;
    char text[256];
};
struct entry_of {
    struct name name;
    int node; /* NOBODY: no file has the name */
};
/* A recorded call with its files and names. */
struct step {
    enum op_kind kind;
    int failed;
    int node;
    struct name name, to;
    uint64_t offset, size;
    const uint8_t *bytes;
    /* The state at the cut. */
    int is_certain, is_void; /* void: no sync makes it certain any more */
    int name_is_certain;     /* of a rename: the new name; `is_certain` is of the old one */
    enum fate fate;
    uint64_t seed;
};
struct names {
    struct entry_of *entries;
    size_t count;
};
struct script {
    struct node *nodes;
    int node_count;
    struct names base;
    struct step *steps;
    long step_count, cut;
    size_t *uncertain;
    size_t uncertain_count;
};

static void *grown(void *memory, size_t size) {
    memory = realloc(memory, size ? size : 1);
    if (!memory) broken("out of memory");
    return memory;
}

/* ---- Names ---- */

static int node_at(const struct names *names, int folder, const char *text, size_t size) {
    for (size_t i = 0; i < names->count; i++) {
        const struct name *name = &names->entries[i].name;
        if (name->folder == folder && strlen(name->text) == size && memcmp(name->text, text, size) == 0) return names->entries[i].node;
    }
    return NOBODY;
}
static void name_node(struct names *names, const struct name *name, int node) {
    for (size_t i = 0; i < names->count; i++) {
        if (names->entries[i].name.folder == name->folder && strcmp(names->entries[i].name.text, name->text) == 0) {
            names->entries[i].node = node;
            return;
        }
    }
    names->entries = grown(names->entries, sizeof names->entries[0] * (names->count + 1));
    names->entries[names->count].name = *name;
    names->entries[names->count++].node = node;
}
/* Finds the folder and the last part of a path that is relative to the root, node 0. */
static struct name found(const struct names *names, const char *path) {
    struct name name = {0, ""};
    const char *slash;
    while ((slash = strchr(path, '/'))) {
        name.folder = node_at(names, name.folder, path, (size_t)(slash - path));
        if (name.folder == NOBODY) broken("a recorded path leads nowhere: %s", path);
        path = slash + 1;
    }
    snprintf(name.text, sizeof name.text, "%s", path);
    return name;
}

static int new_node(struct script *script, int is_folder, uint64_t inode) {
    struct node *node;
    script->nodes = grown(script->nodes, sizeof *node * (size_t)(script->node_count + 1));
    node = &script->nodes[script->node_count];
    memset(node, 0, sizeof *node);
    node->is_folder = is_folder;
    node->inode = inode;
    return script->node_count++;
}
/* Returns the newest node of an inode number, since the number is used again when its file is gone. */
static int node_of(const struct script *script, uint64_t inode) {
    for (int i = script->node_count - 1; i >= 0; i--) if (script->nodes[i].inode == inode) return i;
    return NOBODY;
}

struct script *script_make(const struct tree *base) {
    struct script *script = calloc(1, sizeof *script);
    struct names live = {NULL, 0};
    if (!script) broken("out of memory");
    if (faults->overflow) broken("the recording was too long");
    for (size_t i = 0; i < base->count; i++) {
        const struct entry *entry = &base->entries[i];
        int node = new_node(script, entry->is_folder, entry->inode);
        script->nodes[node].base = entry->bytes;
        script->nodes[node].base_size = entry->size;
        if (i > 0) {
            struct name name = found(&live, entry->path);
            name_node(&live, &name, node);
        }
    }
    script->base.entries = grown(NULL, sizeof live.entries[0] * live.count);
    if (live.count) memcpy(script->base.entries, live.entries, sizeof live.entries[0] * live.count);
    script->base.count = live.count;
    script->steps = calloc((size_t)faults->op_count + 1, sizeof script->steps[0]);
    script->uncertain = calloc((size_t)faults->op_count + 1, sizeof script->uncertain[0]);
    if (!script->steps || !script->uncertain) broken("out of memory");
    script->step_count = faults->op_count;
    for (long i = 0; i < faults->op_count; i++) {
        const struct op *op = &faults->ops[i];
        struct step *step = &script->steps[i];
        step->kind = op->kind;
        step->failed = op->failed;
        step->offset = op->offset;
        step->size = op->size;
        step->bytes = faults->log_bytes + op->bytes;
        if (op->path) step->name = found(&live, (const char *)faults->log_bytes + op->path);
        if (op->to) step->to = found(&live, (const char *)faults->log_bytes + op->to);
        switch (op->kind) {
        case OP_CREATE:
        case OP_MKDIR:
            step->node = new_node(script, op->kind == OP_MKDIR, op->inode);
            name_node(&live, &step->name, step->node);
            break;
        case OP_RENAME:
        case OP_LINK:
            step->node = node_at(&live, step->name.folder, step->name.text, strlen(step->name.text));
            if (op->kind == OP_RENAME) name_node(&live, &step->name, NOBODY);
            name_node(&live, &step->to, step->node);
            break;
        case OP_UNLINK:
            step->node = node_at(&live, step->name.folder, step->name.text, strlen(step->name.text));
            name_node(&live, &step->name, NOBODY);
            break;
        case OP_WRITE:
        case OP_TRUNCATE:
        case OP_SYNC:
        case OP_SYNC_ALL:
            step->node = node_of(script, op->inode);
            if (step->node == NOBODY) broken("a recorded file was never made");
            break;
        }
    }
    free(live.entries);
    return script;
}

void script_free(struct script *script) {
    for (int i = 0; i < script->node_count; i++) free(script->nodes[i].bytes);
    free(script->nodes);
    free(script->base.entries);
    free(script->steps);
    free(script->uncertain);
    free(script);
}

/* ---- Certain outcomes ---- */

static int is_data(const struct step *step) { return step->kind == OP_WRITE || step->kind == OP_TRUNCATE; }
static int is_naming(const struct step *step) {
    return step->kind == OP_CREATE || step->kind == OP_MKDIR || step->kind == OP_RENAME || step->kind == OP_LINK || step->kind == OP_UNLINK;
}

/* Makes the steps certain that a sync of `node`, or of everything (NOBODY), covers. */
static void settle(struct script *script, long before, int node, int is_failure) {
    for (long i = 0; i < before; i++) {
        struct step *step = &script->steps[i];
        if (is_data(step) && (node == NOBODY || step->node == node)) {
            if (is_failure) step->is_void |= !step->is_certain;
            else step->is_certain |= !step->is_void;
        }
        if (is_naming(step) && !is_failure) {
            int other = step->kind == OP_RENAME || step->kind == OP_LINK ? step->to.folder : step->name.folder;
            if (node == NOBODY || step->name.folder == node) step->is_certain = 1;
            if (node == NOBODY || other == node) step->name_is_certain = 1;
        }
    }
}

size_t script_cut(struct script *script, long cut, int lies) {
    script->cut = cut;
    script->uncertain_count = 0;
    for (long i = 0; i < script->step_count; i++) {
        struct step *step = &script->steps[i];
        step->is_certain = step->is_void = step->name_is_certain = 0;
        step->fate = FATE_NONE;
    }
    for (long i = 0; i < cut; i++) {
        const struct step *step = &script->steps[i];
        int lie;
        if (step->kind != OP_SYNC && step->kind != OP_SYNC_ALL) continue;
        lie = step->kind == OP_SYNC_ALL             ? LIES_OF_FILES | LIES_OF_FOLDERS
              : script->nodes[step->node].is_folder ? LIES_OF_FOLDERS
                                                    : LIES_OF_FILES;
        if (!(lies & lie)) settle(script, i, step->kind == OP_SYNC_ALL ? NOBODY : step->node, step->failed);
    }
    for (long i = 0; i < cut; i++) {
        const struct step *step = &script->steps[i];
        int is_certain = is_data(step)                                      ? step->is_certain
                         : step->kind == OP_RENAME || step->kind == OP_LINK ? step->is_certain && step->name_is_certain
                                                                            : step->is_certain;
        if ((is_data(step) || is_naming(step)) && !is_certain) script->uncertain[script->uncertain_count++] = (size_t)i;
    }
    return script->uncertain_count;
}

void script_set(struct script *script, size_t index, enum fate fate, uint64_t seed) {
    struct step *step = &script->steps[script->uncertain[index]];
    step->fate = fate;
    step->seed = seed;
}
int script_is_write(const struct script *script, size_t index) { return script->steps[script->uncertain[index]].kind == OP_WRITE; }

/* ---- The contents of the disk ---- */

static void resize(struct node *node, uint64_t size) {
    if (size > node->room) {
        node->room = size + size / 2;
        node->bytes = grown(node->bytes, node->room);
    }
    if (size > node->size) memset(node->bytes + node->size, 0, size - node->size);
    node->size = size;
}

static void apply_write(struct node *node, const struct step *step, enum fate fate) {
    uint64_t end = step->offset + step->size, state = step->seed, reached = node->size;
    if (fate == FATE_NONE) return;
    if (fate == FATE_SECTORS) {
        for (uint64_t at = step->offset; at < end;) {
            uint64_t next = (at / SECTOR + 1) * SECTOR;
            if (next > end) next = end;
            if (random_next(&state) & 1) {
                if (next > node->size) resize(node, next);
                memcpy(node->bytes + at, step->bytes + (at - step->offset), next - at);
                reached = next;
            }
            at = next;
        }
        /* The length may be that of the whole write, or reach only to the last sector. */
        if (random_next(&state) & 1 && end > reached && end > node->size) resize(node, end);
        return;
    }
    if (end > node->size) resize(node, end);
    if (fate == FATE_ALL) memcpy(node->bytes + step->offset, step->bytes, step->size);
}

static struct names apply(struct script *script) {
    struct names names = {NULL, script->base.count};
    names.entries = grown(NULL, sizeof names.entries[0] * names.count);
    if (names.count) memcpy(names.entries, script->base.entries, sizeof names.entries[0] * names.count);
    for (int i = 0; i < script->node_count; i++) {
        struct node *node = &script->nodes[i];
        node->size = 0;
        if (node->is_folder || node->base_size == 0) continue;
        resize(node, node->base_size);
        memcpy(node->bytes, node->base, node->base_size);
    }
    for (long i = 0; i < script->cut; i++) {
        const struct step *step = &script->steps[i];
        enum fate fate = step->is_certain ? FATE_ALL : step->fate;
        switch (step->kind) {
        case OP_WRITE: apply_write(&script->nodes[step->node], step, fate); break;
        case OP_TRUNCATE: if (fate != FATE_NONE) resize(&script->nodes[step->node], step->offset); break;
        case OP_CREATE:
        case OP_MKDIR: if (fate != FATE_NONE) name_node(&names, &step->name, step->node); break;
        case OP_UNLINK: if (fate != FATE_NONE) name_node(&names, &step->name, NOBODY); break;
        case OP_RENAME:
        case OP_LINK: {
            /* If either folder is certain, the rename happened. If only the new one is, or by fate, the old name may exist too. */
            int happened = step->is_certain || step->name_is_certain || step->fate != FATE_NONE;
            int both = !step->is_certain && (step->kind == OP_LINK || (step->name.folder != step->to.folder && step->fate != FATE_ALL));
            if (happened && !both) name_node(&names, &step->name, NOBODY);
            if (happened) name_node(&names, &step->to, step->node);
            break;
        }
        case OP_SYNC:
        case OP_SYNC_ALL: break;
        }
    }
    return names;
}

static void write_folder(struct script *script, const struct names *names, int folder, const char *path) {
    make_folder(path);
    for (size_t i = 0; i < names->count; i++) {
        const struct entry_of *entry = &names->entries[i];
        if (entry->name.folder != folder || entry->node == NOBODY) continue;
        char *inside = path_of(path, entry->name.text);
        const struct node *node = &script->nodes[entry->node];
        if (node->is_folder) write_folder(script, names, entry->node, inside);
        else write_file(inside, node->bytes, node->size);
        free(inside);
    }
}
void script_write(struct script *script, const char *root) {
    struct names names = apply(script);
    write_folder(script, &names, 0, root);
    free(names.entries);
}

static uint64_t folded(uint64_t hash, const void *bytes, uint64_t size) {
    const uint8_t *at = bytes;
    uint64_t state = hash ^ size;
    for (; size >= 8; size -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        state = (state ^ word) * 0x9E3779B97F4A7C15u;
        state ^= state >> 32;
    }
    for (; size > 0; size--) state = (state ^ *at++) * 0x100000001B3u;
    return random_next(&state);
}
static uint64_t folder_digest(struct script *script, const struct names *names, int folder) {
    /* The hashes of the entries are added, so that the order of the names does not matter. */
    uint64_t sum = 1;
    for (size_t i = 0; i < names->count; i++) {
        const struct entry_of *entry = &names->entries[i];
        if (entry->name.folder != folder || entry->node == NOBODY) continue;
        const struct node *node = &script->nodes[entry->node];
        uint64_t inside = node->is_folder ? folder_digest(script, names, entry->node) : folded(2, node->bytes, node->size);
        sum += folded(inside, entry->name.text, strlen(entry->name.text));
    }
    return sum;
}
uint64_t script_digest(struct script *script) {
    struct names names = apply(script);
    uint64_t digest = folder_digest(script, &names, 0);
    free(names.entries);
    return digest;
}
