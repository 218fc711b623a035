#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TOLLBAR_REDIS_H */
