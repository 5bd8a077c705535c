#pragma once

#include <cstddef>
#include <limits>
#include <vector>

namespace cortado {

// Transfers under way that share ports: what a device, a network interface or a bus can send or receive. A
// flow at full speed takes so many seconds, and uses its share of each port meanwhile. Where the flows under
// way would use more than a whole port they slow down: those needed sooner take what they want, the others
// share what is left. Flows needed at the same time are max-min fair: none could go faster without slowing
// one that is slower already (progressive filling; Bertsekas and Gallager, Data Networks, 6.5.2).
class Flows {
 public:
  struct Load {
    int port = 0;
    double share = 0;  // of the port; more than 1: the flow stands for several
  };
  explicit Flows(int ports) : ports_(static_cast<size_t>(ports)) {}

  // Starts a flow and returns its number, counted up. A flow with a smaller `needed` is needed sooner.
  int start(double seconds, std::vector<Load> loads, double needed = 0);
  // Whether one that is needed later is under way and uses one of the ports.
  bool later_use(const std::vector<Load>& loads, double needed) const;
  bool idle() const { return flows_.empty(); }
  double speed(int flow);       // relative to what it has alone
  double done(int flow) const;  // share of it, in [0, 1]
  double next_end();            // seconds until the first one ends; infinity: there is none
  // Lets so much time pass, at most next_end(). Returns the numbers of the flows that have ended, ascending;
  // those that end within a billionth of their time end together.
  std::vector<int> advance(double seconds);

 private:
  struct Flow {
    int number;
    double whole, left;  // seconds, alone; left: when `passed_` was 0
    std::vector<Load> loads;
    double needed = 0;
    double speed = 1;
    bool open = false;  // its speed is not set yet
  };
  Flow& flow(int number);
  const Flow& flow(int number) const;
  void pass();
  void set_speeds();
  struct Port;
  void fill(const std::vector<Port*>& ports);

  struct Port {
    double taken = 0;          // by flows whose speed is set
    double waiting = 0;        // by the others, at full speed
    std::vector<Flow*> flows;  // that use it
    double limit() const;      // of the speed of those that wait
  };
  std::vector<Port> ports_;
  std::vector<Flow> flows_;  // by number, ascending
  int next_ = 0;
  bool changed_ = false;                                        // since speeds were set
  double passed_ = 0;                                           // seconds since `left` was true
  double first_end_ = std::numeric_limits<double>::infinity();  // seconds from then
};

}  // namespace cortado
