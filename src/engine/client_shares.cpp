#include "engine/client_shares.h"

#include <algorithm>
#include <limits>

namespace couplet::engine {

ClientShares::Client& ClientShares::join(std::uint64_t id) {
  Client& client = clients_[id];
  if (client.num_unfinished++ == 0) client.served = std::max(client.served, least_served_);
  return client;
}

void ClientShares::settle() {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [id, client] : clients_)
    if (client.num_unfinished > 0) least = std::min(least, client.served);
  least_served_ = std::max(least_served_, least);  // nobody at work: infinite, and all is forgotten
  std::erase_if(clients_, [this](const auto& entry) {
    return entry.second.num_unfinished == 0 && entry.second.served <= least_served_;
  });
  if (clients_.empty()) least_served_ = 0;
  for (auto& [id, client] : clients_) client.served = std::min(client.served, least_served_ + kMostAhead);
}

}  // namespace couplet::engine
