// Prints in nanoseconds what the clocks say, one a line.
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

static void show(const char *name, long long s, long long ns) { printf("%s %lld\n", name, s * 1000000000LL + ns); }

static void show_clock(const char *name, clockid_t id) {
  struct timespec ts;
  clock_gettime(id, &ts);
  show(name, ts.tv_sec, ts.tv_nsec);
}

int main(void) {
  struct timeval tv;
  time_t seconds;
  show_clock("REALTIME", CLOCK_REALTIME);
  show_clock("REALTIME_COARSE", CLOCK_REALTIME_COARSE);
  gettimeofday(&tv, NULL);
  show("gettimeofday", tv.tv_sec, tv.tv_usec * 1000LL);
  show("time", time(&seconds), 0);
  show("time*", seconds, 0);
  show_clock("MONOTONIC", CLOCK_MONOTONIC);
  show_clock("MONOTONIC_COARSE", CLOCK_MONOTONIC_COARSE);
  show_clock("BOOTTIME", CLOCK_BOOTTIME);
  return 0;
}
