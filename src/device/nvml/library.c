/* A management library (NVML) for tests. It answers from a file of recorded facts beside it, read anew at each call: lines of
   `name value`, or `name !code` for an error of nvmlReturn_t. What the file does not name is not supported. Signatures and codes
   are those of nvml.h. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, UNKNOWN = 999 };

static int fact(const char *name, char *value, size_t size) {
    Dl_info self;
    char path[4096], line[512];
    size_t length = strlen(name);
    int answer = NOT_SUPPORTED;
    if (!dladdr((void *)fact, &self)) return UNKNOWN;
    snprintf(path, sizeof path, "%s", self.dli_fname);
    char *slash = strrchr(path, '/');
    if (!slash) return UNKNOWN;
    snprintf(slash + 1, sizeof path - (slash + 1 - path), "facts");
    FILE *file = fopen(path, "r");
    if (!file) return UNKNOWN;
    while (fgets(line, sizeof line, file)) {
        if (strncmp(line, name, length) || line[length] != ' ') continue;
        line[strcspn(line, "\n")] = 0;
        if (line[length + 1] == '!') {
            answer = atoi(line + length + 2);
        } else {
            snprintf(value, size, "%s", line + length + 1);
            answer = SUCCESS;
        }
        break;
    }
    fclose(file);
    return answer;
}

static int number(const char *name, unsigned long long *value) {
    char text[64];
    int answer = fact(name, text, sizeof text);
    if (answer == SUCCESS) *value = strtoull(text, 0, 0);
    return answer;
}

static int small(const char *name, unsigned *value) {
    unsigned long long wide = 0;
    int answer = number(name, &wide);
    if (answer == SUCCESS) *value = (unsigned)wide;
    return answer;
}

typedef struct device *Device;
typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} PciInfo;
typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory;

int nvmlInit_v2(void) {
    unsigned unused;
    int answer = small("init", &unused);
    return answer == NOT_SUPPORTED ? SUCCESS : answer;
}
int nvmlShutdown(void) { return SUCCESS; }
int nvmlSystemGetDriverVersion(char *text, unsigned length) { return fact("driver_version", text, length); }
int nvmlSystemGetNVMLVersion(char *text, unsigned length) { return fact("nvml_version", text, length); }
int nvmlSystemGetCudaDriverVersion_v2(int *version) { return small("cuda_version", (unsigned *)version); }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    *device = (Device)1;
    return index == 0 ? SUCCESS : INVALID_ARGUMENT;
}
/* Whether that fact is the address: eight digits of the domain, of which programs write four. */
static int is_at(const char *name, const char *address) {
    char own[32];
    int answer = fact(name, own, sizeof own);
    if (answer != SUCCESS) return answer;
    return strcasecmp(address, own) && strcasecmp(address, own + 4) ? NOT_FOUND : SUCCESS;
}
/* The GPU of which the facts are, or another one, of which nothing but its address is known. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *address, Device *device) {
    int answer = is_at("bus_id", address);
    *device = (Device)1;
    if (answer != NOT_FOUND || is_at("other_bus_id", address) != SUCCESS) return answer;
    *device = (Device)2;
    return SUCCESS;
}
int nvmlDeviceGetTopologyCommonAncestor(Device first, Device second, unsigned *level) {
    return first == second ? INVALID_ARGUMENT : small("common_ancestor", level);
}
int nvmlDeviceGetName(Device device, char *text, unsigned length) { return fact("name", text, length); }
int nvmlDeviceGetPciInfo_v3(Device device, PciInfo *info) {
    memset(info, 0, sizeof *info);
    int answer = fact("bus_id", info->busId, sizeof info->busId);
    if (answer == SUCCESS) memcpy(info->busIdLegacy, info->busId + 4, 13);
    return answer;
}
int nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
    unsigned value;
    int answer = small("compute_capability", &value);
    if (answer == SUCCESS) *major = value / 10, *minor = value % 10;
    return answer;
}
int nvmlDeviceGetMemoryInfo_v2(Device device, Memory *memory) {
    unsigned version = memory->version;
    memset(memory, 0, sizeof *memory);
    memory->version = version;
    int answer = number("memory_total", &memory->total);
    if (answer == SUCCESS) answer = number("memory_used", &memory->used);
    memory->free = memory->total - memory->used;
    return answer;
}
static int clock(const char *kind, unsigned type, unsigned *mhz) {
    const char *const types[] = {"graphics", "sm", "memory", "video"};
    char name[64];
    if (type > 3) return INVALID_ARGUMENT;
    snprintf(name, sizeof name, "%s_%s", kind, types[type]);
    return small(name, mhz);
}
int nvmlDeviceGetClockInfo(Device device, unsigned type, unsigned *mhz) { return clock("clock", type, mhz); }
int nvmlDeviceGetMaxClockInfo(Device device, unsigned type, unsigned *mhz) { return clock("clock_max", type, mhz); }
int nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned *mw) { return small("power_limit", mw); }
int nvmlDeviceGetPowerUsage(Device device, unsigned *mw) { return small("power", mw); }
int nvmlDeviceGetTotalEnergyConsumption(Device device, unsigned long long *mj) { return number("energy", mj); }
int nvmlDeviceGetTemperature(Device device, unsigned sensor, unsigned *celsius) { return small("temperature", celsius); }
int nvmlDeviceGetEccMode(Device device, unsigned *current, unsigned *pending) {
    int answer = small("ecc", current);
    *pending = *current;
    return answer;
}
int nvmlDeviceGetMigMode(Device device, unsigned *current, unsigned *pending) {
    int answer = small("mig", current);
    *pending = *current;
    return answer;
}
int nvmlDeviceGetCurrPcieLinkWidth(Device device, unsigned *value) { return small("link_width", value); }
int nvmlDeviceGetMaxPcieLinkWidth(Device device, unsigned *value) { return small("link_width_max", value); }
int nvmlDeviceGetCurrPcieLinkGeneration(Device device, unsigned *value) { return small("link_generation", value); }
int nvmlDeviceGetMaxPcieLinkGeneration(Device device, unsigned *value) { return small("link_generation_max", value); }
int nvmlDeviceGetPcieReplayCounter(Device device, unsigned *value) { return small("replays", value); }
int nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long *bits) { return number("throttle", bits); }
