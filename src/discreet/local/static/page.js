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
    if (question.options.length === 0) return about(question.plan, report);
    return `the number ${report}: it fits some of the answers more than others; yours may or may not be among them.`;
  }

  // Which values make a report of a number likelier than the others do.
  function about({ kind, lower, upper, steps, width }, report) {
    const place = kind === "HybridMean" ? report - 2 : report;
    if (kind === "OneBitMean" || place < 0) {
      return `“${report ? "a high number" : "a low number"}”, which may or may not fit yours.`;
    }
    const value = (step) => Number((lower + (Math.min(Math.max(step, 0), steps) / steps) * (upper - lower)).toPrecision(3));
    return `“from ${value(place - width + 1)} to ${value(place)}”; your number may or may not be between them.`;
  }

  function number(share) {
    const [over, under] = share.split("/");
    return Number(over) / Number(under || 1);
  }

  // The report is kept on this device.  Whoever is made to load the page again, by an accident or by
  // a server that says it got nothing, sends the same one: a second would cost a second time.
  const token = decoded(location.hash.slice(1));
  const KEPT = "discreet survey ";
  const mine = `${KEPT}${survey.fingerprint} `;
  const kept = `${mine}${token}`;
  let report = recall();

  // A link that was damaged on its way is shown to the server as it is, and refused there.
  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  function recall() {
    try {
      const found = JSON.parse(localStorage.getItem(kept));
      return found && found.report ? found.report : found;
    } catch {
      return null;
    }
  }

  function keep() {
    try {
      localStorage.setItem(kept, JSON.stringify({ report, epsilon: survey.epsilon }));
      return "";
    } catch {
      return " This browser keeps nothing: do not load this page again to answer anew, which would tell more.";
    }
  }

  // Whoever asks the same people again, by another link or under another name, learns more: this
  // device says so before anything is answered.  What was lost adds up.
  function warn() {
    let [again, others, lost] = [false, 0, number(survey.epsilon)];
    try {
      for (const name of Object.keys(localStorage)) {
        if (!name.startsWith(KEPT) || name === kept) continue;
        if (name.startsWith(mine)) again = true;
        else others += 1;
        const found = JSON.parse(localStorage.getItem(name));
        lost += found && found.epsilon ? number(found.epsilon) : number(survey.epsilon);
      }
    } catch {
      return; // nothing is kept here: said when the report is made
    }
    const said = [];
    if (again) said.push("On this device a report of this very survey was made before, by another link. If it was yours, do not answer again: a second report tells more about you.");
    if (others) said.push(`On this device ${others === 1 ? "another survey" : `${others} other surveys`} from here ${others === 1 ? "was" : "were"} answered.`);
    if (!said.length) return;
    at("before").textContent = `${said.join(" ")} If all reports are yours, what they tell adds up to ε = ${Number(lost.toPrecision(3))} with this one.`;
    at("before").hidden = false;
  }

  function show(warning) {
    at("form").reset();
    at("form").hidden = true; // what comes next stands alone
    at("before").hidden = true;
    at("form").querySelectorAll("input, select, button").forEach((one) => { one.disabled = true; });
    survey.questions.forEach((question, place) => {
      at("words").append(made("dt", question.text), made("dd", words(question, report[place])));
    });
    at("tells").textContent = `Every report can come from every answer. Whatever anyone believed about you before, ` +
      `the odds of one set of answers against another change by at most a factor of ${Math.exp(number(survey.epsilon)).toPrecision(3)} ` +
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
      const { text, options, plan } = survey.questions[missing];
      const within = options.length === 0 ? ` (a number from ${plan.lower} to ${plan.upper})` : "";
      at("problem").textContent = `Please answer: ${text}${within}`;
      at("questions").children[missing].querySelector("input, select").focus();
      return;
    }
    at("problem").textContent = "";
    report = survey.questions.map(({ plan }, place) => randomizers[plan.kind](secure, answers[place], plan));
    show(keep());
  });

  if (report === null) warn();
  else show(" It was made here before, and is the only one that this page makes for you.");

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
