#pragma once
// The description of this server that it publishes at /openapi.json (OpenAPI 3.1): apps/server/openapi.json with the bounds
// that depend on the model and the options put in.

#include <string>

#include "server/served_model.h"

namespace couplet::server {

std::string openapi_json(const ServedModel& model);

}  // namespace couplet::server
