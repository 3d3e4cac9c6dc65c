#include <gdn/gdn.h>
#include <stdio.h>

int main(void) {
  gdn_bundle *bundle;
  gdn_status status = gdn_bundle_open("/nonexistent.gdnb", &bundle);
  printf("gdn %d.%d.%d: %s: %s\n", GDN_VERSION_MAJOR, GDN_VERSION_MINOR, GDN_VERSION_PATCH, gdn_status_string(status),
         gdn_last_error_message());
  return status == GDN_FILE_ERROR ? 0 : 1;
}
