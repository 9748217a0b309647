#pragma once
// What each client has had of the engine: whoever had least goes first, so that clients with work get equal parts of it.
// A client that comes or comes back starts level with the least served of those at work: it can't save up, and what it had
// while nobody else wanted it counts only up to a bound.

#include <cstdint>
#include <cstddef>
#include <unordered_map>

namespace couplet::engine {

class ClientShares {
 public:
  // How many tokens a client may be ahead of the least served: it waits no longer than others take to have so many.
  static constexpr double kMostAhead = 2048;

  struct Client {
    double served = 0;       // tokens run for it
    int num_unfinished = 0;  // its sequences
    int num_running = 0;     // those of them that are admitted
  };

  // One more sequence of this client; stays valid until as many leave.
  Client& join(std::uint64_t client);
  void leave(Client& client) { --client.num_unfinished; }
  // Once a step: finds the least served, and forgets who has no work and no debt.
  void settle();

  std::size_t num_clients() const { return clients_.size(); }

 private:
  std::unordered_map<std::uint64_t, Client> clients_;
  double least_served_ = 0;
};

}  // namespace couplet::engine
