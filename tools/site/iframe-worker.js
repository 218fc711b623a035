// The site's search runs in a web worker. A browser starts no worker for a page that was opened as a file. For such a page this
// script replaces Worker by a class that loads the worker's program into a hidden frame.
(() => {
  if (location.protocol !== "file:") {
    return;
  }
  // The program calls two functions that a worker has. The frame defines them: postMessage hands a message to the page, and
  // importScripts loads scripts one after the other.
  const scope = `
    window.postMessage = data => parent.dispatchEvent(new CustomEvent("from-frame", { detail: { frame: window, data } }));
    window.importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise(loaded => {
      const script = document.createElement("script");
      script.src = url;
      script.onload = loaded;
      document.body.append(script);
    })), Promise.resolve());`;
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<body><script>${scope}</script><script src="${new URL(url, location)}"></script></body>`;
      this.frame = frame;
      this.loaded = new Promise(loaded => frame.addEventListener("load", loaded));
      addEventListener("from-frame", ({ detail }) => {
        if (detail.frame === frame.contentWindow) {
          const event = new MessageEvent("message", { data: detail.data });
          this.dispatchEvent(event);
          this.onmessage?.(event);
        }
      });
      document.body.append(frame);
    }
    async postMessage(data) {
      await this.loaded;
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
    }
    terminate() {
      this.frame.remove();
    }
  };
})();
