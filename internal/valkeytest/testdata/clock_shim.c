// Moves the wall clock of the process it is preloaded into (LD_PRELOAD) by an
// offset that another process sets. Clocks that do not tell the time of day,
// CLOCK_MONOTONIC among them, are left alone.
//
// The offset is read from a mapped file, so a call costs no I/O. The real time
// comes from the C library, which asks no kernel where the vDSO has it (vdso(7)).
// Until that function has been looked up it comes from a raw system call: to look
// it up allocates, and the allocator asks for the time.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static struct shared {
  int64_t offset; // nanoseconds to add; written by the other process
  int64_t pid;    // of the process that reads it
} *shared;

static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void start(void) {
  real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  const char *path = getenv("VALKEYTEST_CLOCK");
  int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void *p = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (p == MAP_FAILED) return;
  shared = p;
  __atomic_store_n(&shared->pid, getpid(), __ATOMIC_RELEASE);
}

int clock_gettime(clockid_t id, struct timespec *ts) {
  int result = real ? real(id, ts) : (int)syscall(SYS_clock_gettime, id, ts);
  if (result != 0 || !shared || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return result;
  int64_t now = ts->tv_sec * INT64_C(1000000000) + ts->tv_nsec + __atomic_load_n(&shared->offset, __ATOMIC_ACQUIRE);
  ts->tv_sec = now / 1000000000;
  ts->tv_nsec = now % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
  (void)tz; // obsolete, see gettimeofday(2)
  struct timespec ts;
  int result = clock_gettime(CLOCK_REALTIME, &ts);
  if (result == 0 && tv) *tv = (struct timeval){ts.tv_sec, ts.tv_nsec / 1000};
  return result;
}

time_t time(time_t *t) {
  struct timespec ts;
  if (clock_gettime(CLOCK_REALTIME, &ts) != 0) return -1;
  if (t) *t = ts.tv_sec;
  return ts.tv_sec;
}
