/* SPDX-License-Identifier: Apache-2.0 */
/* Hands the puzzle to a worker, shows how far it is, and posts the solution. Its words are in the
 * page, in the reader's language. */
"use strict";
(function () {
  const byId = (id) => document.getElementById(id);
  const form = byId("form"), status = byId("status"), work = byId("work");
  const difficulty = Number(form.dataset.difficulty), average = Math.pow(2, difficulty);
  /* Of a telephone and of a desktop, about; what this device does is known after the first report. */
  let perSecond = 500000;

  byId("site").textContent = location.host;
  /* Shown in place of another page, it returns to that one. */
  if (location.pathname !== form.getAttribute("action"))
    form.elements.to.value = location.pathname + location.search;

  function say(id) {
    status.textContent = byId(id).textContent;
  }

  function fail(id) {
    say(id);
    work.hidden = true;
  }

  /* "5 seconds", in the page's language. */
  function duration(seconds) {
    const minutes = seconds > 99;
    const number = Math.ceil(minutes ? seconds / 60 : seconds);
    try {
      return new Intl.NumberFormat(document.documentElement.lang,
        { style: "unit", unit: minutes ? "minute" : "second", unitDisplay: "long" }).format(number);
    } catch (error) {
      return number + (minutes ? " min" : " s");
    }
  }

  function showTime() {
    const text = duration(average / perSecond);
    if (byId("time").textContent !== text) byId("time").textContent = text;
  }

  /* Without cookies the site would send the browser back here for ever. */
  if (!navigator.cookieEnabled) {
    fail("no-cookies");
    return;
  }
  let worker;
  try {
    const source = new Blob([byId("worker").textContent], { type: "text/javascript" });
    worker = new Worker(URL.createObjectURL(source));
  } catch (error) {
    fail("too-old");
    return;
  }
  let begun, slow = false;
  worker.onerror = () => fail("failed");
  worker.onmessage = (event) => {
    const tried = event.data.tried;
    if (tried === undefined) {
      byId("progress").value = 1;
      form.elements.solution.value = event.data.solution;
      form.submit();
      return;
    }
    perSecond = tried / (performance.now() - begun) * 1000;
    showTime();
    /* The chance that a puzzle is solved after so many hashes. */
    byId("progress").value = 1 - Math.exp(-tried / average);
    /* One check in twenty takes so long. */
    if (tried > 3 * average && !slow) {
      slow = true;
      say("slow");
    }
  };
  showTime();
  work.hidden = false;
  begun = performance.now();
  worker.postMessage({ puzzle: form.elements.puzzle.value, difficulty: difficulty });
})();
