#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace cortado {

// How the gradients of a layer's parameters are summed over the devices that hold the same slice.
//   allreduce  every device gets the sum and updates its copy
//   owner      each device gets the sum of its share, updates it there and sends the result back: a parameter
//              server spread over the devices (DeePa, section 5)
//   server     the same by servers in the hosts' memory, with nothing hidden under computing, as frameworks
//   did
//              that the papers compare with: after the backward pass each device sends all its gradients to
//              the hosts of its group, each of which serves an equal share, and reads all parameters back
//   replicate  nothing is summed: each device gathers the inputs and output gradients of all and computes the
//              whole gradient (Lee et al. 2017, section III.C.2)
enum class GradientSync { allreduce, owner, server, replicate };

struct GradientSyncFacts {
  GradientSync sync{};
  std::string_view name{};       // in files
  std::string_view after_cut{};  // in reports
  bool replicates = false;       // each replica computes the whole gradient; not every layer can
};
inline constexpr GradientSyncFacts gradient_syncs[] = {
    {.sync = GradientSync::allreduce, .name = "allreduce"},
    {.sync = GradientSync::owner, .name = "owner", .after_cut = ", owners"},
    {.sync = GradientSync::server, .name = "server", .after_cut = ", servers"},
    {.sync = GradientSync::replicate, .name = "replicate", .after_cut = ", replicated", .replicates = true}};

const GradientSyncFacts& facts_of(GradientSync sync);
std::string_view name_of(GradientSync sync);
std::optional<GradientSync> gradient_sync_of(std::string_view name);  // none: there is none of that name
std::string gradient_sync_choices();                                  // "allreduce, owner, server or ..."

}  // namespace cortado
