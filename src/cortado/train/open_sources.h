#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "cortado/data/memory_reader.h"
#include "cortado/train/data_network.h"

namespace cortado {

// The batches of a net's source layers in memory that can be written: what a reader brings is copied there.
// Input and MemoryData layers whose values nobody brings have what was written, at first zeros.
class OpenSources {
 public:
  explicit OpenSources(DataNetwork& data);

  // What the Executor of the net reads from; must not outlive this object.
  std::map<std::string, BatchSource> sources();
  // The values of a top, channels last.
  std::span<float> values(const std::string& layer, int top);
  // Takes the batches of a layer from `reader`, of the same shapes, from now on.
  void feed(const std::string& layer, std::unique_ptr<Reader> reader);
  // Takes over who feeds the layers of `from` that have the same shapes here.
  void take_feeds(OpenSources& from);
  // While one lives, only `layers` bring their next batch when they are loaded; the others keep what they
  // have.
  class Advance {
   public:
    Advance(OpenSources& sources, const std::set<std::string>& layers);
    ~Advance() { sources_.held_back_.clear(); }
    Advance(const Advance&) = delete;

   private:
    OpenSources& sources_;
  };

 private:
  struct Held {
    TopBuffers tops;
    BatchSource next;                // null: nobody brings values
    std::unique_ptr<Reader> reader;  // that feeds it; null: the net's own
  };
  std::vector<const float*> load(const std::string& layer);

  std::map<std::string, Held> held_;
  std::set<std::string> held_back_;
};

}  // namespace cortado
