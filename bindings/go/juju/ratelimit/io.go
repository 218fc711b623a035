package ratelimit

import "io"

// Reader returns a reader that takes a token for each byte that it has read, and sleeps for it.
func Reader(r io.Reader, bucket *Bucket) io.Reader { return &reader{r, bucket} }

// Writer returns a writer that takes a token for each byte, and sleeps for it before it writes.
func Writer(w io.Writer, bucket *Bucket) io.Writer { return &writer{w, bucket} }

type reader struct {
	from   io.Reader
	bucket *Bucket
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.bucket.Wait(int64(n))
	return n, err
}

type writer struct {
	to     io.Writer
	bucket *Bucket
}

func (w *writer) Write(p []byte) (int, error) {
	w.bucket.Wait(int64(len(p)))
	return w.to.Write(p)
}
