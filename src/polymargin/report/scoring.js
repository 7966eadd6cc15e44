
/* The scoring form: the formula of the model, evaluated for the row in the form. */

(() => {
  const source = document.getElementById("scoring-data");
  if (source === null) return;
  const model = JSON.parse(source.textContent);
  const doubles = (packed) => {
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const view = new DataView(bytes.buffer);
    return Float64Array.from({ length: bytes.length / 8 }, (_, i) => view.getFloat64(8 * i, true));
  };
  const weights = doubles(model.weights);
  const points = model.kernel === null ? null : doubles(model.points);
  const base = doubles(model.typical);
  const fields = model.fields.map((field) => ({ ...field, effects: doubles(field.effects) }));
  const q = base.length;
  const t = model.intercept.length;
  const form = document.getElementById("scoring-form");
  const entries = [...form.querySelectorAll("[data-variable]")];

  /* What scalers and encoders make of the row: a sum over its columns. */
  function featuresOf(row) {
    const features = Float64Array.from(base);
    fields.forEach((field, at) => {
      for (let j = 0; j < q; j++) {
        features[j] += field.isNumber
          ? (row[at] - field.typical) * field.effects[j]
          : field.effects[row[at] * q + j];
      }
    });
    return features;
  }

  function kernelAt(features, point) {
    const { name, gamma, degree, coef0 } = model.kernel;
    let inner = 0;
    let distance = 0;
    for (let j = 0; j < q; j++) {
      const own = points[point * q + j];
      const gap = features[j] - own;
      inner += features[j] * own;
      distance += name === "laplacian" ? Math.abs(gap) : gap * gap;
    }
    if (name === "rbf" || name === "laplacian") return Math.exp(-gamma * distance);
    if (name === "poly") return Math.pow(gamma * inner + coef0, degree);
    return name === "sigmoid" ? Math.tanh(gamma * inner + coef0) : inner;
  }

  /* Pairs of classes vote; ties go by their summed tanh, which never outweighs a vote. */
  function countVotes(tasks) {
    return model.votes.map((codes) => {
      let total = 0;
      codes.forEach((code, pair) => {
        if (code !== 0) total += (tasks[pair] > 0) === (code > 0) ? 1 : 0;
        total += (Math.tanh(tasks[pair]) * code) / (2 * model.votes.length);
      });
      return total;
    });
  }

  function scoresOf(row) {
    let features = featuresOf(row);
    if (model.columns !== null) features = model.columns.map((column) => features[column]);
    const scores = [...model.intercept];
    const width = weights.length / t;
    for (let i = 0; i < width; i++) {
      const value = points === null ? features[i] : kernelAt(features, i);
      for (let c = 0; c < t; c++) scores[c] += value * weights[i * t + c];
    }
    const counted = model.votes === null ? scores : countVotes(scores);
    if (model.refinement === null) return counted;
    const [scale, offset] = model.refinement;
    return counted.map((value, j) => scale[j] * value - offset[j]);
  }

  function probabilitiesOf(scores) {
    const logits = scores.map((score, j) => score / model.temperature + model.offsets[j]);
    const highest = Math.max(...logits);
    const powers = logits.map((logit) => Math.exp(logit - highest));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map((power) => power / total);
  }

  function lossOf(scores) {
    if (model.paperLoss) {
      const hinges = scores.map((score) => Math.max(score + 1 / (scores.length - 1), 0));
      return hinges.reduce((sum, hinge) => sum + hinge, 0) - Math.max(...hinges);
    }
    const ordered = [...scores].sort((a, b) => b - a);
    return ordered[1] - ordered[0];
  }

  /* The rejector's monotone estimate, between the losses at which it is known. */
  function strengthOf(loss) {
    const [losses, strengths] = model.strength;
    if (loss <= losses[0]) return strengths[0];
    for (let i = 1; i < losses.length; i++) {
      if (loss <= losses[i]) {
        const share = (loss - losses[i - 1]) / (losses[i] - losses[i - 1]);
        return strengths[i - 1] + share * (strengths[i] - strengths[i - 1]);
      }
    }
    return strengths[strengths.length - 1];
  }

  function showPushes(row, best, rival) {
    const lead = (scores) => scores[best] - scores[rival];
    const whole = lead(scoresOf(row));
    const pushes = fields.map((field, at) => {
      const other = [...row];
      other[at] = field.typical;
      return [field.name, whole - lead(scoresOf(other))];
    });
    pushes.sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    const rows = pushes.map(([name, push]) => {
      const line = document.createElement("tr");
      const head = document.createElement("th");
      head.scope = "row";
      head.textContent = name;
      const cell = document.createElement("td");
      cell.className = "number";
      cell.dataset.push = push;
      cell.textContent = (push > 0 ? "+" : "") + text(push);
      line.append(head, cell);
      return line;
    });
    document.getElementById("scored-pushes").tBodies[0].replaceChildren(...rows);
  }

  function score() {
    const row = entries.map((entry) => (entry.value.trim() === "" ? NaN : Number(entry.value)));
    const valid = row.every(Number.isFinite);
    entries.forEach((entry, at) => entry.setAttribute("aria-invalid", String(!Number.isFinite(row[at]))));
    document.getElementById("scoring-problem").textContent = valid
      ? ""
      : "Every field needs a number; what is shown is for the last row that had them.";
    if (!valid) return;
    const scores = scoresOf(row);
    const probabilities = probabilitiesOf(scores);
    const best = scores.indexOf(Math.max(...scores));
    const rival = scores.indexOf(Math.max(...scores.filter((_, j) => j !== best)));
    const loss = lossOf(scores);
    const rejected = model.threshold !== null && loss > model.threshold;
    scores.forEach((value, j) => {
      const shown = { score: value, probability: probabilities[j] };
      for (const [kind, number] of Object.entries(shown)) {
        const cell = document.querySelector(`[data-${kind}="${j}"]`);
        cell.textContent = text(number);
        cell.dataset.value = number;
      }
    });
    show("scored-decision", rejected ? -1 : best, rejected ? "rejected: too weak" : data.classes[best]);
    show("scored-strength", model.strength === null ? probabilities[best] : strengthOf(loss));
    const other = rival === best ? scores.lastIndexOf(scores[best]) : rival;
    show("scored-rival", other, data.classes[other]);
    showPushes(row, best, other);
  }

  form.addEventListener("input", score);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(score));
  score();
})();
