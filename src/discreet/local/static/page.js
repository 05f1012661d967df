(() => {
  const survey = JSON.parse(document.getElementById("survey").textContent);
  const at = (id) => document.getElementById(id);
  const made = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);
  const secure = (count) => crypto.getRandomValues(new Uint8Array(count));
  const MANY = 12; // more options than this are a list to choose from

  function field(question, place) {
    const name = `q${place}`;
    const set = made("fieldset", "");
    set.append(made("legend", question.text));
    if (question.options.length === 0) {
      const { lower, upper } = question.plan;
      const label = made("label", `A number from ${lower} to ${upper} `);
      label.append(made("input", "", { type: "number", name, min: lower, max: upper, step: "any", inputMode: "decimal" }));
      set.append(label);
    } else if (question.options.length > MANY) {
      const list = made("select", "", { name });
      list.setAttribute("aria-label", question.text);
      list.append(made("option", "Choose", { value: "" }));
      question.options.forEach((option, code) => list.append(made("option", option, { value: String(code) })));
      set.append(list);
    } else {
      question.options.forEach((option, code) => {
        const label = made("label", "", { className: "option" });
        label.append(made("input", "", { type: "radio", name, value: String(code) }), made("span", option));
        set.append(label);
      });
    }
    return set;
  }

  function answer(question, place) {
    const found = new FormData(at("form")).get(`q${place}`);
    if (found === null || found.trim() === "") return null;
    const number = Number(found);
    if (question.options.length > 0) return number;
    const { lower, upper } = question.plan;
    return Number.isFinite(number) && number >= lower && number <= upper ? number : null;
  }

  const bits = (hex, count) => Array.from({ length: count }, (_, place) =>
    (parseInt(hex.substr(2 * (place >> 3), 2), 16) >> (7 - (place & 7))) & 1);

  function words(question, report) {
    const { kind, categories } = question.plan;
    if (kind === "Direct") return `“${question.options[report]}”, which may or may not be your answer.`;
    if (kind === "Unary" || kind === "SubsetSelection") {
      const listed = question.options.filter((_, code) => bits(report, categories)[code]);
      const shown = listed.slice(0, 6).map((one) => `“${one}”`).join(", ") || "none of the answers";
      return `${shown}${listed.length > 6 ? ` and ${listed.length - 6} more` : ""}; your answer may or may not be among them.`;
    }
    if (question.options.length === 0) return `the number ${report}, which is only loosely tied to yours.`;
    return `the number ${report}, which fits about a share of all answers; yours may or may not be among them.`;
  }

  function ratio(share) {
    const [over, under] = share.split("/");
    return Math.exp(Number(over) / Number(under || 1)).toPrecision(3);
  }

  // The report is kept on this device.  Whoever is made to load the page again, by an accident or by
  // a server that says it got nothing, sends the same one: a second would cost a second time.
  const token = decodeURIComponent(location.hash.slice(1));
  const kept = `discreet survey ${survey.fingerprint} ${token}`;
  let report = recall();

  function recall() {
    try {
      return JSON.parse(localStorage.getItem(kept));
    } catch {
      return null;
    }
  }

  function keep() {
    try {
      localStorage.setItem(kept, JSON.stringify(report));
      return "";
    } catch {
      return " This browser keeps nothing: do not load this page again to answer anew, which would tell more.";
    }
  }

  function show(warning) {
    at("form").reset();
    at("form").querySelectorAll("input, select, button").forEach((one) => { one.disabled = true; });
    survey.questions.forEach((question, place) => {
      at("words").append(made("dt", question.text), made("dd", words(question, report[place])));
    });
    at("tells").textContent = `Every report can come from every answer. Whatever anyone believed about you before, ` +
      `the odds of one set of answers against another change by at most a factor of ${ratio(survey.epsilon)} ` +
      `(e to the ε, ε = ${survey.epsilon}) by seeing this report, whatever else they know and for ever.${warning}`;
    at("raw").textContent = JSON.stringify(report);
    at("report").hidden = false;
    at("sent").focus();
  }

  survey.questions.forEach((question, place) => at("questions").append(field(question, place)));

  at("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (report !== null) return; // drawn once: choosing among draws would undo them
    const answers = survey.questions.map(answer);
    const missing = answers.indexOf(null);
    if (missing >= 0) {
      at("problem").textContent = `Please answer: ${survey.questions[missing].text}`;
      at("questions").children[missing].querySelector("input, select").focus();
      return;
    }
    at("problem").textContent = "";
    report = survey.questions.map(({ plan }, place) => randomizers[plan.kind](secure, answers[place], plan));
    show(keep());
  });

  if (report !== null) show(" It was made here before, and is the only one that this page makes for you.");

  at("send").addEventListener("click", async () => {
    at("send").disabled = true;
    at("state").textContent = "Sending …";
    try {
      const reply = await fetch(survey.endpoint, {
        method: "POST",
        credentials: "omit",
        referrerPolicy: "no-referrer",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ survey: survey.fingerprint, token, report }),
      });
      if (reply.ok) {
        at("state").textContent = "Sent. Thank you. You can close this page.";
        return;
      }
      const said = await reply.json().catch(() => ({}));
      at("state").textContent = `Not accepted: ${said.what || "the server refused it."}`;
    } catch {
      at("state").textContent = "Not sent: there is no connection. The report is kept on this page; try again later.";
    }
    at("send").disabled = false;
  });
})();
