#include "cortado/cli/guarded.h"

#include <fmt/format.h>
#include <new>
#include <system_error>

#include "cortado/base/resident_memory.h"
#include "cortado/base/text.h"

namespace cortado {
namespace {

// The message cannot say what the memory was for: that is not known here.
std::string out_of_memory() {
  return fmt::format(
      "out of memory: the system gives this process no more than the {:.1f} MiB that it has; "
      "a net needs less with a smaller batch_size",
      static_cast<double>(peak_resident_memory().count) / (1 << 20));
}

}  // namespace

int guarded(const std::function<int()>& body,
            const std::function<int(ExitCode, const std::string&)>& on_error) {
  auto report = [&](ExitCode code, std::string_view message) {
    return on_error(code, message_line(message));
  };
  try {
    return body();
  } catch (const UserError& error) {
    return report(ExitCode::user_error, error.what());
  } catch (const PeerError& error) {
    return report(ExitCode::peer_error, error.what());
  } catch (const std::bad_alloc&) {
    return report(ExitCode::user_error, out_of_memory());
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again)
      return report(ExitCode::internal_error, fmt::format("internal error: {}", error.what()));
    return report(ExitCode::user_error,
                  "the system gives this process no more threads; give fewer --threads or --reader-threads, "
                  "or raise `ulimit -u` or `ulimit -v`");
  } catch (const std::exception& error) {
    return report(ExitCode::internal_error, fmt::format("internal error: {}", error.what()));
  }
}

}  // namespace cortado
