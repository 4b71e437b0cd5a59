// Looks at the page again every half minute, and puts what is new in place of what is old. The page works without it.
(() => {
  const every = 30000;
  async function look() {
    const live = document.getElementById("live");
    if (document.hidden || !live || live.contains(document.activeElement)) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById("live");
      const old = document.querySelector("footer");
      const foot = page.querySelector("footer");
      if (!fresh || !foot || !old) return;
      live.replaceWith(fresh);
      old.replaceWith(foot);
    } catch {
      // The server is away, or the session has ended: the page stays as it is, with its time below.
    }
  }
  setInterval(look, every);
})();
