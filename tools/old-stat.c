/* stat64 and the like for a library that runs with glibc 2.17: until 2.32 glibc had them in each
 * program, as calls of the functions below with a number of the struct's layout. */

struct stat64;

#if defined(__x86_64__)
enum { LAYOUT = 1 };
#else
enum { LAYOUT = 0 };
#endif

int __xstat64(int layout, const char *path, struct stat64 *out);
int __lxstat64(int layout, const char *path, struct stat64 *out);
int __fxstat64(int layout, int file, struct stat64 *out);
int __fxstatat64(int layout, int directory, const char *path, struct stat64 *out, int flags);

int stat64(const char *path, struct stat64 *out) { return __xstat64(LAYOUT, path, out); }
int lstat64(const char *path, struct stat64 *out) { return __lxstat64(LAYOUT, path, out); }
int fstat64(int file, struct stat64 *out) { return __fxstat64(LAYOUT, file, out); }
int fstatat64(int directory, const char *path, struct stat64 *out, int flags) {
    return __fxstatat64(LAYOUT, directory, path, out, flags);
}
