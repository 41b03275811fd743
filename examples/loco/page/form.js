// A contact as a form. It remembers the version with which it was filled in, so that later changes of other devices stay. Input is kept as
// a draft in this window until it is saved or cancelled: another click or a reload loses nothing.

import { bytesOf, post } from "/api.js";
import { el, fill, named } from "/dom.js";
import { face } from "/parts.js";

const EDGE = 512;
const LABELS = {
  name: "Name", company: "Company", town: "Town", email: "E-mail", phones: "Phones", tags: "Tags", notes: "Notes", photo: "Photo",
};
const DRAFT = "draft:";
const EMPTY = { name: "", company: "", town: "", email: "", phones: [], tags: [], notes: "", photo: null };

/** A member of a card as one line. */
function told(name, value) {
  if (name === "photo") return value ? "another photo" : "no photo";
  if (name === "phones") value = value.map((phone) => phone.number).join(", ");
  if (name === "tags") value = value.join(", ");
  return value ? named(value) : "empty";
}

/** Shows in the open form what other devices changed since it was filled in; all fields stay as they are. */
export function showMeanwhile(view, now) {
  const form = view.querySelector("form.card");
  if (!form?.filledFrom) return;
  const there = form.querySelector(".meanwhile"), text = (name, card) => JSON.stringify(card[name]);
  if (!now.card) {
    fill(there, now.problem ? null : el("p", {}, "This contact was deleted meanwhile. Saving asks whether to bring it back."));
    return;
  }
  const changed = Object.keys(LABELS).filter((name) => text(name, now.card) !== text(name, form.filledFrom));
  fill(there, changed.length ? [
    el("p", {}, "Changed elsewhere since this form was opened. Saving keeps both edits, and asks where both changed the same."),
    el("dl", { class: "facts" }, changed.map((name) => [el("dt", {}, LABELS[name]), el("dd", {}, told(name, now.card[name]))]))] : null);
}

/** A photo as a JPEG of at most 512 pixels, in Base64: phones take pictures of many megabytes. */
async function small(file) {
  const picture = await createImageBitmap(file);
  const scale = Math.min(1, EDGE / Math.max(picture.width, picture.height));
  const canvas = el("canvas");
  canvas.width = Math.max(1, Math.round(picture.width * scale));
  canvas.height = Math.max(1, Math.round(picture.height * scale));
  canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.85).split(",")[1];
}

function line(phone, onRemove) {
  const made = el("div", { class: "line" },
    el("input", { type: "text", value: phone.label, placeholder: "mobile", "aria-label": "Kind of number" }),
    el("input", { type: "text", value: phone.number, placeholder: "Number", "aria-label": "Number", inputmode: "tel" }),
    el("button", { type: "button", "aria-label": "Remove this number", onclick: () => { made.remove(); onRemove(); } }, "Remove"));
  made.phoneId = phone.id;
  return made;
}

function readDraft(key) {
  try {
    return JSON.parse(sessionStorage.getItem(DRAFT + key));
  } catch {
    return null;
  }
}

function keepDraft(key, draft) {
  try {
    if (draft) sessionStorage.setItem(DRAFT + key, JSON.stringify(draft));
    else sessionStorage.removeItem(DRAFT + key);
  } catch {
    // There is no space left for a large photo: keep the text at least.
    if (draft?.picture) keepDraft(key, { ...draft, picture: null });
  }
}

/** Returns whether there is a draft of the form at an address. */
export function hasDraft(key) {
  return sessionStorage.getItem(DRAFT + key) !== null;
}

/** The form of a contact, or of a new one. key: its address, under which its draft is kept. again(): shows it without the draft. */
export function showForm(contact, key, again) {
  if (contact && !contact.card) {
    const said = contact.problem ? "This contact cannot be read, so it cannot be edited." : "This contact was deleted.";
    return el("p", { class: "problem" }, said);
  }
  const draft = readDraft(key);
  const card = draft?.card ?? contact?.card ?? EMPTY, at = draft ? draft.at : contact?.at;
  const filledFrom = draft ? draft.filledFrom : contact && contact.card;
  const back = contact ? "#/contact/" + encodeURIComponent(contact.id) : "#/";
  let picture = draft?.picture ?? null, photo = card.photo, isBusy = false, chosen = null;
  const field = (name, label, value) => el("div", {}, el("label", { for: "field-" + name }, label),
    el("input", { type: "text", id: "field-" + name, name, value, autocomplete: "off" }));
  const phones = el("div", {}, card.phones.map((phone) => line(phone, changed)));
  if (!card.phones.length) phones.append(line({ label: "mobile", number: "" }, changed));
  const shown = el("span", { class: "preview" }), photoSaid = el("span", { class: "muted small", role: "status" });
  const drop = () => {
    photo = picture = chosen = null;
    preview("Without a photo.");
    changed();
  };
  const without = el("button", { type: "button", onclick: drop }, "No photo");
  const preview = (said) => {
    photoSaid.textContent = said;
    without.hidden = !photo && !picture;
    if (!picture) return fill(shown, photo ? face({ name: "", photo }, "") : null);
    const address = URL.createObjectURL(new Blob([bytesOf(picture)], { type: "image/jpeg" }));
    const image = el("img", { src: address, alt: "The new photo", onload: () => URL.revokeObjectURL(address) });
    return fill(shown, el("span", { class: "face" }, image));
  };
  const take = async (event) => {
    const file = event.target.files[0];
    if (!file) return;
    chosen = file;
    try {
      const made = await small(file);
      // Meanwhile the user chose another file, or none.
      if (chosen !== file) return;
      picture = made;
      preview("The new photo is saved with the rest.");
      changed();
    } catch {
      if (chosen === file) photoSaid.textContent = "This file is no picture that the browser knows.";
    }
  };
  const name = field("name", "Name", card.name), nameField = name.querySelector("input");
  nameField.setAttribute("aria-describedby", "name-problem");
  name.append(el("p", { class: "wrong", id: "name-problem", role: "alert" }));
  const problems = el("div", { role: "alert" });
  const save = el("button", { class: "primary" }, "Save");
  const form = el("form", { class: "card" },
    draft ? el("p", { class: "row-of small draft" }, "What you had begun to write is here again.",
      el("button", { type: "button", onclick: () => { keepDraft(key, null); again(); } }, "Discard it")) : null,
    name,
    el("div", { class: "two" }, field("company", "Company", card.company), field("town", "Town", card.town)),
    field("email", "E-mail", card.email),
    el("fieldset", {}, el("legend", {}, "Phones"), phones,
      el("button", { type: "button", onclick: () => {
        phones.append(line({ label: "", number: "" }, changed));
        phones.lastChild.querySelector("input").focus();
      } }, "Add a number")),
    field("tags", "Tags, with commas between them", card.tags.join(", ")),
    el("div", {}, el("label", { for: "field-notes" }, "Notes"), el("textarea", { id: "field-notes", name: "notes", value: card.notes })),
    el("fieldset", {}, el("legend", {}, "Photo"), el("div", { class: "picture" }, shown,
      el("input", { type: "file", accept: "image/*", "aria-label": "A new photo", onchange: take }), without, photoSaid)),
    el("div", { class: "meanwhile", role: "status" }), problems,
    el("div", { class: "row-of ends" }, save,
      el("a", { class: "button", href: back, onclick: () => keepDraft(key, null) }, "Cancel")));
  form.filledFrom = filledFrom;
  preview(picture ? "The new photo is saved with the rest." : "");

  function given() {
    const texts = Object.fromEntries(["name", "company", "town", "email", "tags", "notes"].map((one) => [one, form.elements[one].value]));
    const numbers = [...phones.children].map((one) => {
      const [label, number] = one.querySelectorAll("input");
      return { id: one.phoneId, label: label.value, number: number.value };
    });
    return { ...texts, phones: numbers, tags: texts.tags.split(",").map((tag) => tag.trim()).filter(Boolean), photo };
  }

  const begun = draft ? null : JSON.stringify(given());
  function changed() {
    const now = given();
    keepDraft(key, !picture && JSON.stringify(now) === begun ? null : { card: now, at, filledFrom, picture });
  }

  async function send(confirmed) {
    // Ignores clicks while a save is under way, and until the page has changed: they would save twice.
    if (isBusy) return;
    if (!nameField.value.trim()) {
      name.querySelector(".wrong").textContent = "A contact needs a name.";
      nameField.setAttribute("aria-invalid", "true");
      nameField.focus();
      return;
    }
    isBusy = save.disabled = true;
    try {
      const saved = await post("save", { id: contact?.id, at, picture, card: given(), confirmed });
      keepDraft(key, null);
      // If the user went elsewhere meanwhile, stay there.
      if (form.isConnected) location.hash = "#/contact/" + encodeURIComponent(saved.id);
    } catch (problem) {
      isBusy = save.disabled = false;
      fill(problems, el("p", { class: "problem" }, problem.message), problem.confirm
        ? el("button", { type: "button", onclick: () => send(problem.confirm) }, "Save it, and bring the contact back") : null);
    }
  }

  form.addEventListener("input", (event) => {
    if (event.target === nameField && nameField.value.trim()) {
      name.querySelector(".wrong").textContent = "";
      nameField.removeAttribute("aria-invalid");
    }
    if (!isBusy) changed();
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  return el("div", {}, el("div", { class: "head" }, el("h2", {}, contact ? ["Edit ", named(card.name)] : "New contact")), form);
}
