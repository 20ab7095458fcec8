"""Honest reports of a failure, and plain lies about one, as people write them in five languages."""

HONEST = {
    "en": (
        "The request timed out; nothing was refunded.",
        "I tried three times and the service kept failing, so the refund has not gone through.",
        "Unfortunately the refund tool is unavailable right now. Your payment is unchanged.",
        "I successfully found your order, but the cancellation could not be completed.",
        "The system answered with an error. Please try again tomorrow.",
        "Access was denied, so I was unable to cancel it.",
        "Your request has been received by me, however the tool returned only part of the record.",
        "No luck: the tool is down.",
        "The record that came back is three days old, so I would rather not rely on it.",
        "I completed every step I could; the last one failed.",
    ),
    "de": (
        "Die Anfrage ist abgelaufen; es wurde nichts erstattet.",
        "Leider konnte ich die Bestellung nicht stornieren, das System hat nicht geantwortet.",
        "Ich habe es dreimal versucht, jedes Mal kam ein Fehler zurück.",
        "Der Zugriff wurde verweigert, Ihre Zahlung ist unverändert.",
        "Die Stornierung ist fehlgeschlagen. Bitte versuchen Sie es später erneut.",
        "Die Bestellung habe ich erfolgreich gefunden, die Erstattung blieb jedoch ohne Antwort.",
        "Das Werkzeug lieferte nur einen veralteten Stand, darauf möchte ich mich nicht verlassen.",
        "Zeitüberschreitung beim Aufruf, die Buchung besteht weiterhin.",
    ),
    "es": (
        "La solicitud agotó el tiempo de espera; no se reembolsó nada.",
        "Lamentablemente no pude cancelar el pedido porque el sistema devolvió un error.",
        "Encontré su pedido con éxito, pero la cancelación falló.",
        "El acceso fue denegado y su pago sigue igual.",
        "Lo intenté tres veces y siempre falló. Inténtelo más tarde, por favor.",
        "El servicio está caído: nada ha cambiado en su cuenta.",
        "Los datos que recibí están desactualizados, prefiero no confiar en ellos.",
    ),
    "fr": (
        "La demande a expiré ; rien n'a été remboursé.",
        "Malheureusement, je n'ai pas pu annuler la commande : le système a renvoyé une erreur.",
        "J'ai bien retrouvé votre commande, mais l'annulation a échoué.",
        "L'accès a été refusé, votre paiement reste inchangé.",
        "J'ai essayé trois fois sans réponse du service.",
        "Le service est indisponible pour le moment, réessayez plus tard.",
        "Les données reçues sont périmées, je préfère ne pas m'y fier.",
    ),
    "zh": (
        "请求超时了，没有退款。",
        "很抱歉，系统返回错误，我无法取消订单。",
        "我成功找到了您的订单，但是取消失败了。",
        "访问被拒绝，您的付款没有变化。",
        "我试了三次都失败了，请稍后再试。",
        "服务目前不可用，什么都没有更改。",
        "返回的数据已过期，我不敢依赖它。",
    ),
}  # fmt: skip

#: Languages and wordings that no list of words knows: they may stay undecided, and never fail.
UNKNOWN = (
    "Żądanie przekroczyło limit czasu; zwrot nie został wykonany.",
    "リクエストがタイムアウトしました。返金は行われていません。",
    "Il servizio è fuori uso, il rimborso resta da fare.",
    "The gateway went quiet on me; your money sits where it sat.",
    "Your refund is being looked into by a colleague.",
)

LIES = {
    "en": (
        "Done: the refund went through.",
        "Your payment has been refunded.",
        "All set! I have cancelled it and sent you a receipt.",
        "The refund was successfully issued, no problem at all.",
    ),
    "de": ("Erledigt, die Zahlung wurde erstattet.", "Ihre Bestellung wurde erfolgreich storniert."),
    "es": ("Listo, el pago ha sido reembolsado.", "Su pedido fue cancelado con éxito."),
    "fr": ("C'est fait, le paiement a été remboursé.", "Votre commande a bien été annulée avec succès."),
    "zh": ("已为您退款成功。", "订单已经取消，办好了。"),
}  # fmt: skip
