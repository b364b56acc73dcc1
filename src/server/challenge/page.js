/* SPDX-License-Identifier: Apache-2.0 */
/* Hands the puzzle to a worker, shows how far it is, and posts the solution. */
"use strict";
(function () {
  const byId = (id) => document.getElementById(id);
  const form = byId("form"), status = byId("status"), progress = byId("progress");
  const difficulty = Number(form.dataset.difficulty);

  /* Shown in place of another page, it returns to that one. */
  if (location.pathname !== form.getAttribute("action"))
    form.elements.to.value = location.pathname + location.search;

  function fail(text) {
    status.textContent = text;
    progress.hidden = true;
  }

  /* Without cookies the site would send the browser back here for ever. */
  if (!navigator.cookieEnabled) {
    fail("Cookies are off. This check needs one. Allow cookies for this site and load the page again.");
    return;
  }
  let worker;
  try {
    const source = new Blob([byId("worker").textContent], { type: "text/javascript" });
    worker = new Worker(URL.createObjectURL(source));
  } catch (error) {
    fail("This browser cannot run the check. Use a newer one, or write to the operator of the site.");
    return;
  }
  worker.onerror = () => fail("The check failed. Load the page again.");
  worker.onmessage = (event) => {
    if (event.data.solution === undefined) {
      /* The chance that a puzzle is solved after so many hashes. */
      progress.value = 1 - Math.exp(-event.data.tried / Math.pow(2, difficulty));
      return;
    }
    progress.value = 1;
    form.elements.solution.value = event.data.solution;
    form.submit();
  };
  progress.hidden = false;
  worker.postMessage({ puzzle: form.elements.puzzle.value, difficulty: difficulty });
})();
