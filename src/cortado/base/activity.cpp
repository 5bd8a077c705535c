#include "cortado/base/activity.h"

#include <algorithm>
#include <mutex>

namespace cortado {
namespace {

// Held for a moment by those that come and go, and while what the last one does is told.
std::mutex mutex;
std::vector<const ActivityScope*> scopes;

}  // namespace

ActivityScope::ActivityScope(std::function<Activity()> tell) : tell_(std::move(tell)) {
  std::lock_guard lock(mutex);
  scopes.push_back(this);
}

ActivityScope::ActivityScope(const char* text, int rank)
    : ActivityScope([=] {
        return Activity{
            .waits = true, .ranks = rank < 0 ? std::vector<int>{} : std::vector{rank}, .text = text};
      }) {}

ActivityScope::~ActivityScope() {
  count_progress();
  std::lock_guard lock(mutex);
  std::erase(scopes, this);
}

Activity current_activity() {
  std::lock_guard lock(mutex);
  return scopes.empty() ? Activity{} : scopes.back()->tell_();
}

}  // namespace cortado
