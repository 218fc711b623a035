#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TOLLBAR_H */
