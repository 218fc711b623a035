package shared

const sysNameToHandleAt = 264
