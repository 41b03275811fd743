// The headers in C++: included twice, with every initialiser. This one needs no other header before it.
#include "llvs_testing.h"
#include "llvs_testing.h"
#include "llvs.h"
#include "llvs.h"

#include <cstdio>
#include <type_traits>

static_assert(std::is_standard_layout<llvs_version_info>::value && std::is_trivial<llvs_version_info>::value, "a C struct");

int main() {
    llvs_control control = LLVS_CONTROL_INIT;
    llvs_store_options store = LLVS_STORE_OPTIONS_INIT;
    llvs_statistics statistics = LLVS_STATISTICS_INIT;
    llvs_version_options version = LLVS_VERSION_OPTIONS_INIT;
    llvs_range range = LLVS_RANGE_INIT;
    llvs_merge_options merge = LLVS_MERGE_OPTIONS_INIT;
    llvs_exchange_options exchange = LLVS_EXCHANGE_OPTIONS_INIT;
    llvs_coordinator_options coordinator = LLVS_COORDINATOR_OPTIONS_INIT;
    llvs_storage_callbacks storage = LLVS_STORAGE_CALLBACKS_INIT;
    llvs_transport_callbacks transport = LLVS_TRANSPORT_CALLBACKS_INIT;
    llvs_change change = LLVS_CHANGE_INIT;
    llvs_fault fault = LLVS_FAULT_INIT;
    llvs_storage_subject storage_subject = LLVS_STORAGE_SUBJECT_INIT;
    llvs_transport_subject transport_subject = LLVS_TRANSPORT_SUBJECT_INIT;
    bool sizes = control.struct_size == sizeof control && store.struct_size == sizeof store && statistics.struct_size == sizeof statistics
        && version.struct_size == sizeof version && range.struct_size == sizeof range && merge.struct_size == sizeof merge
        && exchange.struct_size == sizeof exchange && coordinator.struct_size == sizeof coordinator
        && storage.struct_size == sizeof storage && transport.struct_size == sizeof transport && change.kind == 0
        && fault.struct_size == sizeof fault && storage_subject.struct_size == sizeof storage_subject
        && transport_subject.struct_size == sizeof transport_subject;
    if (!sizes || llvs_version_number() != LLVS_VERSION_NUMBER || LLVS_NONE.size != 0) {
        std::puts("the header does not agree with the library");
        return 1;
    }
    return 0;
}
