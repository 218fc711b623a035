package shared

const sysNameToHandleAt = 303
