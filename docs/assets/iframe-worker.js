// Search runs in a worker, and browsers start none for pages opened from disk. There, a frame takes
// its place: the same script, the same messages, nothing fetched from anywhere else.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const waiting = [];
      let deliver = (data) => waiting.push(data);
      this.postMessage = (data) => deliver(data);

      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) =>
        Promise.all(urls.map((each) => load(inside.document, new URL(each, url).href)));
      load(inside.document, new URL(url, location.href).href).then(() => {
        deliver = (data) => inside.dispatchEvent(new inside.MessageEvent("message", { data }));
        waiting.forEach(deliver);
      });
      this.terminate = () => frame.remove();
    }
  };

  function load(page, url) {
    return new Promise((resolve, reject) => {
      const script = page.createElement("script");
      script.src = url;
      script.onload = resolve;
      script.onerror = reject;
      page.body.append(script);
    });
  }
}
