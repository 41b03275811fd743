// llvs.hpp - llvs.h for C++17: handles that release themselves, errors as exceptions, string_view for bytes.
//
// Thin and header-only: each method is one call of llvs.h, where its effects, costs and errors are documented. Handles are movable and not
// copyable; a moved-from or closed one throws llvs::Error (INVALID_ARGUMENT). Bytes are std::string_view in and std::string out (they may
// hold any bytes, NUL too). If a callback throws (an arbiter, a source, a progress callback, a storage, a transport), the call that runs it
// throws the same exception; exceptions of an Observer's callback are thrown by the Observer.
#ifndef LLVS_HPP
#define LLVS_HPP

#include "llvs/control.hpp"
#include "llvs/coordinator.hpp"
#include "llvs/documents.hpp"
#include "llvs/error.hpp"
#include "llvs/exchange.hpp"
#include "llvs/files.hpp"
#include "llvs/host.hpp"
#include "llvs/index.hpp"
#include "llvs/live.hpp"
#include "llvs/merge.hpp"
#include "llvs/model.hpp"
#include "llvs/options.hpp"
#include "llvs/projection.hpp"
#include "llvs/reports.hpp"
#include "llvs/salvage.hpp"
#include "llvs/store.hpp"
#include "llvs/syncer.hpp"
#include "llvs/values.hpp"

#endif
