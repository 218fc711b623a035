#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TOLLBAR_RULES_H */
