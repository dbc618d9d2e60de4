// Browsers start no workers for pages that are files. The search of such a page runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", {data}));
      this.ready = new Promise((loaded) => {
        inside.importScripts = (...urls) => Promise.all(urls.map((each) => load(inside.document, each)));
        load(inside.document, url).then(loaded);
      });
      this.inside = inside;
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", {data})));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };

  const load = (page, url) => new Promise((loaded) => {
    const script = page.createElement("script");
    script.src = url;
    script.onload = loaded;
    page.head.append(script);
  });
}
